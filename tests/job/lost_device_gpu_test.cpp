// SPDX-License-Identifier: Apache-2.0
// Failures of a device during a run: it runs out of memory in compute (each kind of device), and it is lost (GPU).
#include <ATen/Context.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "stoker/base/error.h"
#include "stoker/device/placement.h"
#include "stoker/job/job.h"
#include "stoker/memory/out_of_memory.h"
#include "stoker/models/registry.h"
#include "stoker/precision/policy.h"
#include "stoker/precision/process_switches.h"
#include "stoker/tasks/image/classifier.h"
#include "stoker/train/step.h"
#include "support/each_device.h"
#include "support/fault_allocator.h"
#include "support/image_set.h"

namespace stoker::job {
namespace {

// While this object exists, the device has too little memory for a step. On a CPU, an allocation in the middle of the
// step fails. A GPU is filled until less is free than the output of a convolution.
class NoMemory {
 public:
  explicit NoMemory(c10::Device device) {
    if (device.is_cpu()) {
      host_.emplace();
      host_->fail_at(25);
      return;
    }
    for (const std::int64_t bytes : {std::int64_t{1} << 30, std::int64_t{128} << 20}) {
      fill(device, bytes);
    }
  }

 private:
  void fill(c10::Device device, std::int64_t bytes) {
    try {
      for (;;) {
        blocks_.push_back(at::empty({bytes}, at::device(device).dtype(at::kByte)));
      }
    } catch (const std::exception& error) {
      EXPECT_TRUE(memory::is_out_of_memory(error)) << error.what();
    }
  }

  std::optional<stoker::testing::FaultAllocator> host_;
  std::vector<at::Tensor> blocks_;
};

class OutOfMemoryIn : public stoker::testing::OnDevice {
 protected:
  // Images for which the output of the first convolution takes 1 GiB on a GPU.
  [[nodiscard]] core::Batch batch() const {
    const std::int64_t samples = on_gpu() ? 2048 : 4, pixels = on_gpu() ? 64 : 8;
    std::vector<std::int64_t> indices(static_cast<std::size_t>(samples));
    core::Batch made({0, 0}, std::move(indices));
    made.set("image", at::arange(samples * pixels * pixels * 3)
                          .mul(97)
                          .remainder(251)
                          .to(at::kByte)
                          .reshape({samples, pixels, pixels, 3}));
    made.set("target", at::arange(samples).remainder(3));
    return device::move_batch(std::move(made), device());
  }

  // The weights after one step; if fails, memory runs out in an attempt before it.
  [[nodiscard]] std::vector<at::Tensor> weights_after_a_step(bool fails) const {
    models::ModelOptions options;
    options.classes = 3;
    options.image_size = on_gpu() ? 64 : 8;
    tasks::ClassifierOptions classifier;
    classifier.preprocessing = {.image_size = options.image_size,
                                .resize = options.image_size,
                                .mean = {0.5, 0.5, 0.5},
                                .std = {0.25, 0.25, 0.25}};
    tasks::ImageClassifier model(models::make_network("cnn", options), classifier);
    model.to(device());
    train::Step step(model, {.name = "adamw"});
    const core::Batch samples = batch();
    if (fails) {
      const NoMemory full(device());
      try {
        step.compute(samples, 0);
        ADD_FAILURE() << "memory did not run out";
      } catch (const std::exception& error) {
        EXPECT_TRUE(memory::is_out_of_memory(error)) << error.what();
      }
    }
    step.compute(samples, 0);
    step.commit(1e-2);
    std::vector<at::Tensor> result;
    for (const core::Parameter& parameter : model.parameters()) {
      result.push_back(parameter.tensor.detach().cpu().clone());
    }
    result.push_back(model.norm_buffers().front().cpu().clone());
    return result;
  }
};
STOKER_ON_EACH_DEVICE(OutOfMemoryIn);

TEST_P(OutOfMemoryIn, ComputeLeavesNoTrace) {
  const precision::ProcessSwitches before;
  precision::apply({.cudnn_benchmark = false, .deterministic = true});
  const std::vector<at::Tensor> got = weights_after_a_step(true), expected = weights_after_a_step(false);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_TRUE(got[i].equal(expected[i])) << "tensor " << i;
  }
}

// An index far out of range makes a kernel's assertion fail. From then on every CUDA call of the process is an error,
// as after a hardware failure.
void lose_the_gpu() {
  const c10::Device gpu(c10::DeviceType::CUDA, 0);
  try {
    const at::Tensor row = at::full({1}, 1 << 30, at::device(gpu).dtype(at::kLong));
    (void)at::ones({4}, at::device(gpu)).index_select(0, row).cpu();
  } catch (const std::exception&) {  // expected; the loop gets the error by itself
  }
}

class LosesTheGpu final : public core::EventSink {
 public:
  void on(const core::Event& event) override {
    const auto* finished = std::get_if<core::StepFinished>(&event);
    if (!lost_ && finished != nullptr && finished->step >= 20) {
      lost_ = true;
      lose_the_gpu();
    }
  }

 private:
  bool lost_ = false;
};

// Ends the process like the command line: code 71 for a DeviceError.
[[noreturn]] void train_until_the_gpu_is_lost() {
  const stoker::testing::TempFolder folder;
  stoker::testing::write_striped_set(folder, "data/train/", 15);
  Request request = make_request({}, {"device=cuda", "model=cnn", "batch=8", "steps=100000", "threads=2", "val=0",
                                      "precision=fp32", "intra_op=1"});
  request.data = folder / "data";
  request.run = (folder / "run").native();
  int code = 0;
  try {
    Job job = Job::prepare(std::move(request), [](const std::string&) {});
    std::vector<std::unique_ptr<core::EventSink>> sinks;
    sinks.push_back(std::make_unique<LosesTheGpu>());
    const std::atomic<bool> never = false;
    (void)job.train(std::move(sinks), never);
  } catch (const DeviceError& error) {
    std::fprintf(stderr, "typed: %s\n", error.what());
    code = 71;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "not typed: %s\n", error.what());
    code = 1;
  }
  std::exit(code);
}

TEST(GpuLost, ARunEndsWithATypedErrorAndTheProcessWithItsExitCode) {
  STOKER_NEEDS_GPU();
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // CUDA does not survive fork()
  EXPECT_EXIT(train_until_the_gpu_is_lost(), ::testing::ExitedWithCode(71), "typed: ");
}

}  // namespace
}  // namespace stoker::job
