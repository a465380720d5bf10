// SPDX-License-Identifier: Apache-2.0
// Devices are chosen by name, with reasons, and batches are moved to them. The meta device stands in for "another
// device" here.
#include "stoker/device/placement.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stoker/base/error.h"
#include "stoker/device/backend.h"
#include "stoker/device/cuda_library.h"

namespace stoker::device {
namespace {

using ::testing::HasSubstr;

const c10::Device kCpu(c10::DeviceType::CPU);
const c10::Device kElsewhere(c10::DeviceType::Meta);

core::Batch sample_batch() {
  core::Batch batch({3, 4}, {7, 8});
  batch.set("image", at::zeros({2, 4, 4, 3}, at::kByte));
  batch.set("target", at::arange(2));
  batch.set({"boxes", at::arange(5), core::Layout::kRagged, at::tensor({0, 2, 5}, at::kLong)});
  batch.set({"scale", at::zeros({1}), core::Layout::kPerBatch, {}});
  return batch;
}

TEST(ChooseDevice, CpuIsAlwaysThere) {
  EXPECT_EQ(choose_device("cpu").device, kCpu);
  EXPECT_EQ(choose_device("cpu").reason, "asked for");
}

TEST(ChooseDevice, AutoTakesWhatThereIsAndSaysWhy) {
  const bool cuda = load_cuda();
  const DeviceChoice choice = choose_device("auto");
  EXPECT_EQ(choice.device, cuda ? c10::Device(c10::DeviceType::CUDA, 0) : kCpu);
  EXPECT_THAT(choice.reason, HasSubstr(cuda ? "compute capability" : "no CUDA: "));
}

TEST(ChooseDevice, MissingGpuIsADeviceErrorWithAWayOut) {
  const std::string wanted = load_cuda() ? "cuda:99" : "cuda";
  try {
    (void)choose_device(wanted);
    FAIL() << wanted << " was found";
  } catch (const DeviceError& error) {
    EXPECT_THAT(error.what(), HasSubstr("device=cpu"));
  }
}

TEST(ChooseDevice, RefusesUnknownDevices) {
  for (const char* wanted : {"", "gpu", "cuda:", "cuda:-1", "cuda:1x", "cuda:99999999999999999999", "CPU", "cuda: 1"}) {
    EXPECT_THROW((void)choose_device(wanted), ConfigError) << '"' << wanted << '"';
  }
}

TEST(DeviceOfRank, IsTheGpuWithItsNumber) {
  EXPECT_EQ(device_of_rank("auto", 2, 4), "cuda:2");
  EXPECT_EQ(device_of_rank("cuda", 3, 4), "cuda:3");
  EXPECT_EQ(device_of_rank("auto", 5, 1), "cuda:0");  // a starter shows each rank one of its own
  EXPECT_EQ(device_of_rank("auto", 1, 0), "auto");
  EXPECT_EQ(device_of_rank("cuda", 1, 0), "cuda");
  EXPECT_EQ(device_of_rank("cpu", 1, 4), "cpu");
  EXPECT_EQ(device_of_rank("cuda:1", 3, 4), "cuda:1");
  EXPECT_THROW((void)device_of_rank("auto", 4, 4), ConfigError);
  EXPECT_THROW((void)device_of_rank("cuda", 2, 2), ConfigError);
}

TEST(MoveBatch, PassesThroughOnItsOwnDevice) {
  core::Batch batch = sample_batch();
  const void* image = batch["image"].data_ptr();
  const core::Batch moved = move_batch(std::move(batch), kCpu);
  EXPECT_EQ(moved["image"].data_ptr(), image);
  EXPECT_EQ(moved.fields().size(), 4U);
}

TEST(MoveBatch, MovesEveryFieldAndKeepsTheRest) {
  const core::Batch batch = move_batch(sample_batch(), kElsewhere);
  for (const core::Field& field : batch.fields()) {
    EXPECT_EQ(field.values.device(), kElsewhere) << field.name;
  }
  EXPECT_EQ(batch["image"].sizes(), (at::IntArrayRef{2, 4, 4, 3}));
  EXPECT_EQ(batch["image"].scalar_type(), at::kByte);
  EXPECT_TRUE(batch.find("boxes")->offsets.is_cpu());
  EXPECT_EQ(batch.find("boxes")->layout, core::Layout::kRagged);
  EXPECT_EQ(batch.find("scale")->layout, core::Layout::kPerBatch);
  EXPECT_EQ(batch.indices(), (std::vector<std::int64_t>{7, 8}));
  EXPECT_EQ(batch.position(), (core::Position{3, 4}));
}

}  // namespace
}  // namespace stoker::device
