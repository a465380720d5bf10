// SPDX-License-Identifier: Apache-2.0
// A recorded step: its categories sum to the allocator's own peak, and what stays is named with operator and shape.
#include "stoker/memory/step_recording.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/zeros_like.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <numeric>
#include <thread>

#include "stoker/device/host_allocator.h"
#include "stoker/memory/allocation_log.h"
#include "stoker/memory/mark.h"

namespace stoker::memory {
namespace {

using core::Phase;
using core::PhaseScope;
using ::testing::HasSubstr;

std::int64_t bytes(const StepRecord& record, Category category) {
  return record.at_peak[static_cast<std::size_t>(category)];
}

// A step by hand: two layers, their gradients, a moment each.
class Toy {
 public:
  Toy() {
    device::install_host_allocator();
    first_ = at::ones({256, 128}).mul_(0.01).requires_grad_(true);
    second_ = at::ones({128, 256}).mul_(0.01).requires_grad_(true);
    moment_ = at::zeros_like(first_);
    unclaimed_ = at::ones({750});
  }
  // Calls `keep` with the activations.
  template <typename Keep>
  StepRecord run(StepRecording& recording, const Keep& keep) {
    const at::Tensor x = input();
    {
      const PhaseScope phase(Phase::kForward);
      const at::Tensor hidden = at::relu(at::linear(x, first_));
      mark("between the layers");
      loss_ = at::linear(hidden, second_).sum();
      keep(hidden);
    }
    {
      const PhaseScope phase(Phase::kBackward);
      torch::autograd::backward({loss_});
      loss_ = at::Tensor();
    }
    for (const at::Tensor& each : {first_, second_}) {
      recording.own(Category::kParameters, each);
      recording.own(Category::kGradients, each.grad());
    }
    recording.own(Category::kOptimizer, moment_);
    recording.own(Category::kInputs, x);
    const PhaseScope phase(Phase::kUpdate);
    const at::NoGradGuard no_grad;
    for (const at::Tensor& each : {first_, second_}) {
      each.sub_(each.grad() * 0.1);
      each.mutable_grad() = at::Tensor();
    }
    return recording.finish();
  }

 private:
  static at::Tensor input() {
    const PhaseScope phase(Phase::kInput);
    return at::ones({64, 128});
  }
  at::Tensor first_, second_, moment_, loss_, unclaimed_;
};

TEST(StepRecording, CategoriesSumToTheAllocatorsPeak) {
  Toy toy;
  device::reset_host_peak();
  StepRecording recording(at::kCPU);
  ASSERT_TRUE(recording.active());
  const StepRecord record = toy.run(recording, [](const at::Tensor&) {});
  const std::int64_t peak = device::host_tensors().peak;
  EXPECT_EQ(record.peak, peak);
  EXPECT_EQ(std::accumulate(record.at_peak.begin(), record.at_peak.end(), std::int64_t{0}), peak);
  EXPECT_EQ(record.after, record.before + 64 * 128 * 4);  // the input
  EXPECT_EQ(bytes(record, Category::kParameters), 2 * 256 * 128 * 4);
  EXPECT_EQ(bytes(record, Category::kOptimizer), 256 * 128 * 4);
  EXPECT_EQ(bytes(record, Category::kInputs), 64 * 128 * 4);
  EXPECT_GE(bytes(record, Category::kOther), 3000);  // nobody has claimed it
  EXPECT_FALSE(record.line.empty());
  EXPECT_EQ(std::ranges::max(record.line), record.peak);
}

TEST(StepRecording, MarksArePhasesAndNamedPoints) {
  Toy toy;
  StepRecording recording(at::kCPU);
  const StepRecord record = toy.run(recording, [](const at::Tensor&) {});
  std::vector<std::string> names;
  for (const MemoryMark& each : record.marks) {
    names.push_back(each.name);
  }
  EXPECT_THAT(names,
              ::testing::ElementsAre("start", "input", "forward", "between the layers", "backward", "update", "end"));
  EXPECT_TRUE(record.marks[3].named);
  EXPECT_GT(record.marks[3].at, record.marks[2].at);
  EXPECT_EQ(record.marks.back().at, 1);
  EXPECT_GE(record.marks[3].allocated, record.marks[2].allocated + 64 * 256 * 4);  // of relu
}

TEST(StepRecording, WhatIsKeptIsNamedWithOperatorAndShape) {
  Toy toy;
  std::vector<at::Tensor> kept;
  StepRecording recording(at::kCPU);
  (void)toy.run(recording, [&](const at::Tensor& hidden) { kept.push_back(hidden.detach()); });
  const Leftovers left = recording.leftovers();
  ASSERT_EQ(left.count, 1);
  EXPECT_EQ(left.bytes, 64 * 256 * 4);
  EXPECT_THAT(left.blocks[0].made_by, HasSubstr("relu"));
  EXPECT_EQ(left.blocks[0].shape, "float [64, 256]");
  EXPECT_EQ(left.blocks[0].phase, Phase::kForward);
  EXPECT_EQ(left.graph_nodes, 0);
  kept.clear();
  EXPECT_EQ(recording.leftovers().count, 0);
}

TEST(StepRecording, AKeptGraphIsSeenByItsNodes) {
  Toy toy;
  std::vector<at::Tensor> kept;
  StepRecording recording(at::kCPU);
  (void)toy.run(recording, [&](const at::Tensor& hidden) { kept.push_back(hidden.sum()); });
  const Leftovers left = recording.leftovers();
  EXPECT_GE(left.graph_nodes, 3);
  EXPECT_THAT(left.newest_node, HasSubstr("sum"));
  kept.clear();
  EXPECT_EQ(recording.leftovers().graph_nodes, 0);
}

TEST(StepRecording, NothingIsRecordedWhileSomebodyElseListens) {
  struct Other final : device::AllocationListener {
  } other;
  device::install_host_allocator();
  device::listen_to_host_allocator(&other);
  {
    const StepRecording recording(at::kCPU);
    EXPECT_FALSE(recording.active());
  }
  EXPECT_EQ(device::listen_to_host_allocator(nullptr), &other);
}

TEST(StepRecording, AllocationsOfOtherThreadsCount) {
  device::install_host_allocator();
  StepRecording recording(at::kCPU);
  at::Tensor theirs;
  std::thread([&] {
    const PhaseScope phase(Phase::kInput);
    theirs = at::ones({1024});
  }).join();
  const StepRecord record = recording.finish();
  EXPECT_EQ(bytes(record, Category::kInputs), 4096);
}

// Made up: a block of the step at the address of an older one that was freed before the peak.
TEST(AllocationLog, AnOwnerThatWasFreedBeforeThePeakIsNotCounted) {
  const std::array<char, 4> memory{};
  AllocationLog log(100);
  log.freed(&memory[0], 60, Phase::kForward, true, true);
  log.made(&memory[1], 500, {Phase::kForward, true, "conv"});
  log.own(Category::kParameters, &memory[0], 60);
  log.own(Category::kParameters, &memory[2], 40);
  log.freed(&memory[1], 500, Phase::kBackward, true, true);
  const StepRecord record = log.record();
  EXPECT_EQ(record.peak, 540);
  EXPECT_EQ(record.after, 40);
  EXPECT_EQ(record.peak_operator, "conv");
  EXPECT_EQ(bytes(record, Category::kParameters), 40);
  EXPECT_EQ(bytes(record, Category::kActivations), 500);
  EXPECT_EQ(bytes(record, Category::kOther), 0);
}

}  // namespace
}  // namespace stoker::memory
