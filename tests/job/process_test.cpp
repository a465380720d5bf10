// SPDX-License-Identifier: Apache-2.0
// Errors of torch and of the libraries below it become typed errors, with the right exit code.
#include "stoker/job/process.h"

#include <c10/util/Exception.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "stoker/base/error.h"
#include "stoker/job/job.h"
#include "support/image_set.h"

namespace stoker::job {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// The message of what work throws, which must be of exactly type E.
template <typename E>
std::string thrown(const std::function<void()>& work) {
  try {
    work();
  } catch (const std::exception& error) {
    EXPECT_EQ(typeid(error), typeid(E)) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return "";
}

const std::string kLaunch = "CUDA error: an illegal memory access was encountered\nCompile with TORCH_USE_CUDA_DSA";

TEST(TypedErrors, ADeviceThatFailsIsADeviceError) {
  const auto expect = [](const auto& raw) {
    EXPECT_THAT(thrown<DeviceError>([&] { with_typed_errors([&] { throw raw; }); }),
                AllOf(HasSubstr("[device] the device failed ("), HasSubstr("nvidia-smi"), Not(HasSubstr("\n"))));
  };
  expect(c10::AcceleratorError({}, 700, kLaunch));
  expect(c10::Error({}, kLaunch));
  expect(c10::Error({}, "CUDA driver initialization failed, you might not have a CUDA gpu."));
  expect(c10::Error({}, "No CUDA GPUs are available"));
  expect(c10::Error({}, "cuDNN error: CUDNN_STATUS_EXECUTION_FAILED"));
  expect(std::runtime_error("CUDA error: CUBLAS_STATUS_EXECUTION_FAILED when calling `cublasSgemm(...)`"));
  expect(std::runtime_error("no CUDA-capable device is detected"));
}

TEST(TypedErrors, MemoryComesFirstAndOursStayAsTheyAre) {
  (void)thrown<OutOfMemory>(
      [] { with_typed_errors([] { throw c10::AcceleratorError({}, 2, "CUDA error: out of memory"); }); });
  (void)thrown<OutOfMemory>([] { with_typed_errors([] { throw std::bad_alloc(); }); });
  EXPECT_EQ(
      thrown<DataError>([] { with_typed_errors([] { fail<DataError>("test", "CUDA error.png: is no image"); }); }),
      "[test] CUDA error.png: is no image");
  (void)thrown<std::logic_error>([] { with_typed_errors([] { throw std::logic_error("ours"); }); });
}

TEST(TypedErrors, OtherErrorsOfTorchAreOneLine) {
  EXPECT_EQ(thrown<Error>([] { with_typed_errors([] { throw c10::Error({}, "sizes differ\nat x.cpp"); }); }),
            "[torch] sizes differ");
  EXPECT_EQ(typed([] { return 7; }), 7);
}

// A program that uses the library gets the same types when the device fails during preparation.
TEST(TypedErrors, PreparingAndResumingThrowThem) {
  const testing::TempFolder folder;
  testing::write_striped_set(folder, "data/train/", 4);
  testing::write_striped_set(folder, "data/val/", 2, 100);
  Request request = make_request({}, {"epochs=1", "batch=4", "threads=0", "intra_op=1", "precision=fp32", "model=mlp",
                                      "layout=contiguous", "device=cpu"});
  request.data = folder / "data";
  request.run = (folder / "run").native();
  const Say fails = [](const std::string&) { throw c10::AcceleratorError({}, 700, kLaunch); };
  EXPECT_THAT(thrown<DeviceError>([&] { (void)Job::prepare(request, fails); }), HasSubstr("illegal memory access"));
  const std::atomic<bool> never{false};
  (void)Job::prepare(request, [](const std::string&) {}).train({}, never);
  EXPECT_THAT(thrown<DeviceError>([&] { (void)Job::resume(folder / "run", {"epochs=2"}, fails); }),
              HasSubstr("illegal memory access"));
}

}  // namespace
}  // namespace stoker::job
