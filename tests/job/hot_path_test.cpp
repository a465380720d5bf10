// SPDX-License-Identifier: Apache-2.0
// The path from batch to optimizer step: nothing waits for the device, nothing grows over thousands of steps, and a
// step that runs out of memory anywhere leaves no trace.
#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>

#include <cmath>
#include <optional>

#include "stoker/base/error.h"
#include "stoker/core/host_value.h"
#include "stoker/core/parallel.h"
#include "stoker/device/scalar_ring.h"
#include "stoker/models/registry.h"
#include "stoker/tasks/image/classifier.h"
#include "stoker/train/loop.h"
#include "stoker/train/step.h"
#include "support/dispatch_counter.h"
#include "support/fault_allocator.h"
#include "support/toy_owner.h"
#include "support/toy_trainable.h"

namespace stoker::train {
namespace {

using stoker::testing::DispatchCounter;
using stoker::testing::FaultAllocator;
using stoker::testing::toy_batch;
using stoker::testing::ToyTrainable;

// The same batch again and again, 50 per epoch.
class Repeating final : public core::BatchSource {
 public:
  std::optional<core::Batch> next() override {
    if (position_.step == 50) {
      position_ = {position_.epoch + 1, 0};
      return std::nullopt;
    }
    core::Batch batch = make_(position_);
    ++position_.step;
    return batch;
  }
  explicit Repeating(std::function<core::Batch(core::Position)> make) : make_(std::move(make)) {}

 private:
  std::function<core::Batch(core::Position)> make_;
  core::Position position_;
};

class Counting final : public core::EventEmitter {
 public:
  void emit(core::Event event) override {
    ++events;
    last = std::move(event);
    if (std::holds_alternative<core::StepFinished>(last)) {
      ++steps;
    }
  }
  int events = 0, steps = 0;
  core::Event last;
};

// An image classifier with batch norm, on a batch of noise.
std::unique_ptr<tasks::ImageClassifier> small_classifier() {
  models::ModelOptions options;
  options.classes = 3;
  options.image_size = 8;
  tasks::ClassifierOptions classifier;
  classifier.preprocessing = {.image_size = 8, .resize = 8, .mean = {0.5, 0.5, 0.5}, .std = {0.25, 0.25, 0.25}};
  classifier.label_smoothing = 0.1;
  return std::make_unique<tasks::ImageClassifier>(models::make_network("cnn", options), classifier);
}

core::Batch image_batch(core::Position position) {
  core::Batch batch(position, {0, 1, 2, 3});
  batch.set("image", at::arange(4 * 8 * 8 * 3).mul(97).remainder(251).to(at::kByte).reshape({4, 8, 8, 3}));
  batch.set("target", at::arange(4).remainder(3));
  return batch;
}

struct Rig {
  explicit Rig(core::Trainable& model, StepOptions options, const std::string& rule = "sgd")
      : optimizer(optim::make_optimizer({.name = rule}, model.parameters())),
        scaler({.scaling = false}, at::kCPU),
        ema(model.parameters(), model.norm_buffers(), 0.9),
        step({.model = model, .optimizer = *optimizer, .scaler = scaler, .ranks = ranks, .ema = &ema}, options),
        ring(at::kCPU, step.scalar_names().size()) {}

  LoopEnd run(core::BatchSource& source, core::EventEmitter& events, std::int64_t steps) {
    Plan plan;
    plan.device = "cpu";
    plan.skip_limit = 10;
    plan.microbatch = microbatch;
    owner.rate = 1e-3;
    FeedWatch feed(source, events);
    Recovery recovery({.microbatch = {.asked = microbatch}, .events = &events});
    const LoopParts parts{.source = source,
                          .step = step,
                          .progress = progress,
                          .recovery = recovery,
                          .scalars = ring,
                          .events = events,
                          .feed = feed,
                          .ranks = ranks,
                          .owner = owner};
    return run_loop(parts, plan, steps);
  }

  core::OneThread alone;  // thousands of small steps stay fast when another program uses a core
  core::SingleRank ranks;
  std::unique_ptr<optim::Optimizer> optimizer;
  precision::GradScaler scaler;
  optim::Ema ema;
  Step step;
  Progress progress;
  device::ScalarRing ring;
  testing::ToyOwner owner;
  std::int64_t microbatch = 0;
};

// true: without the shortcuts for the host, as on a GPU. false: with them, item() is never called either.
class HotPathOfOperators : public ::testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(AndHost, HotPathOfOperators, ::testing::Values(true, false));

TEST_P(HotPathOfOperators, NeitherLossNorClippingNorEmaWaitForTheDevice) {
  std::optional<core::OperatorsOnly> as_on_a_gpu;
  if (GetParam()) {
    as_on_a_gpu.emplace();
  }
  const auto model = small_classifier();
  StepOptions options;
  options.clip = 1;
  Rig rig(*model, options);
  rig.microbatch = 2;
  Repeating source(image_batch);
  Counting events;
  rig.run(source, events, 2);  // one-time work happens here
  std::map<std::string, std::int64_t> waits;
  std::int64_t fused = 0;
  {
    const DispatchCounter counter;
    rig.run(source, events, 6);
    EXPECT_GT(counter.total(), 100) << "the counter saw nothing";
    waits = counter.waits();
    fused = counter.calls("aten::_fused_sgd_");
  }
  // If the learning rate is a tensor, LibTorch's CPU kernels read it on the host once per call. CUDA's kernels read it
  // on the device.
  const std::int64_t reads = GetParam() ? fused : 0;
  for (const auto& [name, count] : waits) {
    EXPECT_TRUE(name == "aten::item" || name == "aten::_local_scalar_dense") << name;
    EXPECT_EQ(count, reads) << name << " in 4 steps";
  }
}

TEST(HotPath, FusedAdamwReadsNothingButItsStepCounterOnTheHost) {
  const auto model = small_classifier();
  Rig rig(*model, {}, "adamw");
  Repeating source(image_batch);
  Counting events;
  rig.run(source, events, 2);
  const DispatchCounter counter;
  rig.run(source, events, 6);
  EXPECT_GT(counter.total(), 100) << "the counter saw nothing";
  // LibTorch's CPU kernel reads the counter once per parameter; the CUDA kernel reads it on the device.
  const auto reads = static_cast<std::int64_t>(4 * model->parameters().size());
  for (const auto& [name, count] : counter.waits()) {
    EXPECT_TRUE(name == "aten::item" || name == "aten::_local_scalar_dense") << name;
    EXPECT_LE(count, reads) << name;
  }
}

TEST(HotPath, NothingGrowsOver2000Steps) {
  FaultAllocator allocator;
  const auto model = small_classifier();
  Rig rig(*model, {});
  Repeating source(image_batch);
  Counting events;
  rig.run(source, events, 100);
  events.last = {};
  const std::int64_t bytes = allocator.live_bytes();
  const std::int64_t blocks = allocator.live_blocks();
  rig.run(source, events, 2100);
  events.last = {};
  EXPECT_EQ(events.steps, 2100);
  EXPECT_EQ(allocator.live_bytes(), bytes);
  EXPECT_EQ(allocator.live_blocks(), blocks);
  EXPECT_EQ(rig.ring.slots(), 64u);
}

TEST(HotPath, OutOfMemoryAtAnyAllocationOfComputeLeavesNoTrace) {
  FaultAllocator allocator;
  const auto weights_after = [&](std::int64_t fail_at) {
    const auto model = small_classifier();
    Rig rig(*model, {});
    const core::Batch batch = image_batch({});
    bool failed = false, reached = false;
    if (fail_at > 0) {
      allocator.fail_at(fail_at);
      try {
        rig.step.compute(batch, 0);
        rig.step.drop();
      } catch (const c10::OutOfMemoryError&) {
        failed = true;
      }
      reached = !allocator.armed();  // LibTorch may recover by itself: no trace then either
      allocator.fail_at(0);
    }
    rig.step.compute(batch, 0);
    rig.step.commit(1e-2);
    std::vector<at::Tensor> result;
    for (const core::Parameter& parameter : model->parameters()) {
      result.push_back(parameter.tensor.detach().clone());
    }
    result.push_back(model->norm_buffers().front().clone());
    return std::make_tuple(failed, reached, result);
  };
  const auto expected = std::get<2>(weights_after(0));
  int failures = 0;
  for (std::int64_t k = 1;; k += 3) {  // every third allocation is enough to hit each operator
    const auto [failed, reached, got] = weights_after(k);
    if (!reached) {
      break;
    }
    failures += failed ? 1 : 0;
    for (std::size_t i = 0; i < expected.size(); ++i) {
      ASSERT_TRUE(got[i].equal(expected[i])) << "tensor " << i << " after a failure at allocation " << k;
    }
  }
  EXPECT_GT(failures, 20);
}

TEST(Loop, StopsWithTheSamplesNamesAfterTooManySkippedSteps) {
  ToyTrainable model(at::kFloat);
  Rig rig(model, {});
  Repeating source([](core::Position position) {
    core::Batch batch(position, std::vector<std::int64_t>{7, 8, 9});
    const core::Batch good = toy_batch(3, at::kFloat);
    batch.set("x", good["x"] * (position.step >= 3 ? std::nan("") : 1.0));
    batch.set("y", good["y"]);
    batch.set("mask", good["mask"]);
    return batch;
  });
  Counting events;
  try {
    rig.run(source, events, 40);
    FAIL() << "it continued";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("began with row 7, row 8, row 9"), std::string::npos) << error.what();
  }
  EXPECT_EQ(rig.progress.step, 3 + 11);  // skip_limit 10: the eleventh in a row ends the run
}

}  // namespace
}  // namespace stoker::train
