// SPDX-License-Identifier: Apache-2.0
// The loop and evaluations that are interrupted: by a signal, by the time limit, and gone on with.
#include "stoker/train/loop.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stoker/core/communicator.h"
#include "stoker/optim/optimizer.h"
#include "stoker/precision/grad_scaler.h"
#include "stoker/train/evaluate.h"
#include "stoker/train/evaluation_watch.h"
#include "support/toy_trainable.h"

namespace stoker::train {
namespace {

using stoker::testing::toy_batch;
using stoker::testing::ToyTrainable;
using ::testing::ElementsAre;
using Log = std::vector<std::string>;

constexpr std::int64_t kEpochSteps = 4;

// Epochs of four batches, from a position on.
class ToySource final : public core::BatchSource {
 public:
  explicit ToySource(core::Position start) : at_(start) {}
  [[nodiscard]] std::optional<core::Batch> next() override {
    if (at_.step == kEpochSteps) {
      at_ = {at_.epoch + 1, 0};
      return std::nullopt;
    }
    const core::Batch made = toy_batch(3, at::kFloat, at_.step);
    core::Batch batch(at_, made.indices());
    for (const char* field : {"x", "y", "mask"}) {
      batch.set(field, made[field]);
    }
    ++at_.step;
    return batch;
  }

 private:
  core::Position at_;
};

class Emitted final : public core::EventEmitter {
 public:
  void emit(core::Event event) override {
    if (const auto* finding = std::get_if<core::Finding>(&event)) {
      findings.push_back(finding->text);
    } else if (const auto* evaluating = std::get_if<core::Evaluating>(&event)) {
      shares.emplace_back(evaluating->done, evaluating->samples);
    }
  }
  Log findings;
  std::vector<std::pair<std::int64_t, std::int64_t>> shares;
};

// A run that can be taken up again: steps, evaluations and checkpoints in order.
struct Rig {
  Rig() : optimizer(optim::make_optimizer({.name = "sgd"}, model.parameters())), scaler({.scaling = false}, at::kCPU) {}

  // interrupt_at: the evaluation at this step is given up, as after a signal.
  LoopEnd run(const Plan& plan, std::int64_t last_step, std::int64_t interrupt_at = -1) {
    core::State saved;  // as a checkpoint would bring it back
    progress.save_state(saved);
    progress.load_state(saved);
    ToySource source(progress.position);
    Step step({model, *optimizer, scaler, ranks}, {});
    device::ScalarRing ring(at::kCPU, step.scalar_names().size());
    std::atomic<bool> stop{false};
    const auto evaluate = [&]() -> std::vector<core::MetricValue> {
      if (progress.step == interrupt_at) {
        stop = signals;
        return {};
      }
      log.push_back("evaluated " + std::to_string(progress.step));
      return {{"loss", 1, false}};
    };
    FeedWatch feed(source, events);
    const LoopParts parts{source,
                          step,
                          progress,
                          ring,
                          events,
                          feed,
                          [](std::int64_t) { return 0.1; },
                          evaluate,
                          {},
                          [&](const char* kind) { log.push_back(kind + (" " + std::to_string(progress.step))); },
                          [](std::int64_t) { return std::string(); },
                          [] { return std::int64_t{-1}; },
                          stop};
    return run_loop(parts, plan, last_step);
  }

  ToyTrainable model{at::kFloat};
  core::SingleRank ranks;
  std::unique_ptr<optim::Optimizer> optimizer;
  precision::GradScaler scaler;
  Progress progress;
  Emitted events;
  Log log;
  bool signals = true;
};

Plan toy_plan() {
  Plan plan;
  plan.device = "cpu";
  plan.eval_every = 0;
  plan.save_every = 0;
  plan.early_stop = 0;
  plan.time = 0;
  return plan;
}

Log evaluations(const Log& log) {
  Log found;
  std::ranges::copy_if(log, std::back_inserter(found),
                       [](const std::string& line) { return line.starts_with("evaluated"); });
  return found;
}

TEST(Loop, AnInterruptedEvaluationIsMadeUpFor) {
  for (const std::int64_t every : {0, 3}) {
    Plan plan = toy_plan();
    plan.eval_every = every;
    Rig straight;
    EXPECT_EQ(straight.run(plan, 10), LoopEnd::kDone);
    for (const std::int64_t at : every == 0 ? std::vector<std::int64_t>{4, 8, 10} : std::vector<std::int64_t>{3, 9}) {
      Rig rig;
      EXPECT_EQ(rig.run(plan, 10, at), LoopEnd::kStopped) << at;
      EXPECT_EQ(rig.progress.step, at);
      EXPECT_EQ(rig.log.back(), "last " + std::to_string(at));
      EXPECT_NE(rig.progress.evaluated_step, at);
      EXPECT_EQ(rig.run(plan, 10), LoopEnd::kDone) << at;
      EXPECT_EQ(evaluations(rig.log), evaluations(straight.log)) << "interrupted at " << at;
      EXPECT_EQ(rig.progress.evaluations_without_gain, straight.progress.evaluations_without_gain) << at;
      for (std::size_t i = 0; i < rig.model.parameters().size(); ++i) {
        EXPECT_TRUE(rig.model.parameters()[i].tensor.equal(straight.model.parameters()[i].tensor)) << at;
      }
      EXPECT_TRUE(rig.events.findings.empty());
    }
  }
}

// The end of a shorter run is no evaluation of the longer one that it becomes.
TEST(Loop, WhatIsNoLongerDueIsNotMadeUpFor) {
  Rig rig;
  EXPECT_EQ(rig.run(toy_plan(), 6, 6), LoopEnd::kStopped);
  EXPECT_EQ(rig.run(toy_plan(), 9), LoopEnd::kDone);
  EXPECT_THAT(evaluations(rig.log), ElementsAre("evaluated 4", "evaluated 8", "evaluated 9"));
}

TEST(Loop, AnEvaluationThatTheTimeLimitEndsIsNamed) {
  Rig rig;
  rig.signals = false;
  EXPECT_EQ(rig.run(toy_plan(), 10, 4), LoopEnd::kTimeUp);
  EXPECT_THAT(rig.log, ElementsAre("last 4"));
  EXPECT_THAT(rig.events.findings, ElementsAre(::testing::HasSubstr("validation after step 4")));
}

TEST(EvaluationWatch, GivesUpBetweenBatchesAndSaysHowFarItIs) {
  Emitted events;
  ToyTrainable model(at::kFloat);
  int asked = 0;
  const auto judge = [&](int give_up_after) {
    asked = 0;
    ToySource source({});
    EvaluationWatch watch(events, {7, "val", 0, 12}, [&] {
      const Stopwatch slow;  // a batch that takes its time
      while (slow.seconds() < 0.6 * core::kQuietSeconds) {
      }
      return ++asked > give_up_after;
    });
    const auto totals = evaluate(model, source, at::kFloat, {}, std::ref(watch));
    EXPECT_EQ(watch.gave_up(), totals.empty());
    return totals;
  };
  EXPECT_TRUE(judge(1).empty());
  EXPECT_EQ(asked, 2);
  const auto totals = judge(100);
  ASSERT_FALSE(totals.empty());
  EXPECT_EQ(totals[1].tensor.item<std::int64_t>(), 12);
  EXPECT_EQ(asked, 4);
  ASSERT_FALSE(events.shares.empty());
  EXPECT_LT(events.shares.size(), 6U);  // not one a batch
  EXPECT_EQ(events.shares.back(), std::pair(std::int64_t{9}, std::int64_t{12}));
}

TEST(EvaluationWatch, TheLimitGetsATenthAndTwoSeconds) {
  Plan plan = toy_plan();
  EXPECT_FALSE(too_late_to_evaluate(plan, 1e9));
  plan.time = 100;
  EXPECT_FALSE(too_late_to_evaluate(plan, 111.9));
  EXPECT_TRUE(too_late_to_evaluate(plan, 112.1));
}

}  // namespace
}  // namespace stoker::train
