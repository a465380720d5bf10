// SPDX-License-Identifier: Apache-2.0
// The loop: interrupted evaluations are made up for, steps are saved before an error ends it, a loss that is not finite
// fails the run, and its time is accounted for. The clock is set by hand.
#include "stoker/train/loop.h"

#include <c10/util/Exception.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <utility>

#include "stoker/base/error.h"
#include "stoker/core/communicator.h"
#include "stoker/optim/optimizer.h"
#include "stoker/precision/grad_scaler.h"
#include "stoker/train/evaluate.h"
#include "stoker/train/evaluation_watch.h"
#include "stoker/train/skip_watch.h"
#include "support/toy_owner.h"
#include "support/toy_trainable.h"

namespace stoker::train {
namespace {

using stoker::testing::toy_batch;
using stoker::testing::ToyTrainable;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Log = std::vector<std::string>;

constexpr std::int64_t kEpochSteps = 4;

// Epochs of four batches, starting at a position. before: called before each batch; nan_from: the first step whose
// samples hold a NaN.
class ToySource final : public core::BatchSource {
 public:
  explicit ToySource(core::Position start, std::function<void(core::Position)> before = {},
                     std::int64_t nan_from = std::numeric_limits<std::int64_t>::max())
      : at_(start), before_(std::move(before)), nan_from_(nan_from) {}
  [[nodiscard]] std::optional<core::Batch> next() override {
    if (before_) {
      before_(at_);
    }
    if (at_.step == kEpochSteps) {
      at_ = {at_.epoch + 1, 0};
      return std::nullopt;
    }
    const core::Batch made = toy_batch(3, at::kFloat, at_.step);
    core::Batch batch(at_, made.indices());
    for (const char* field : {"x", "y", "mask"}) {
      batch.set(field, made[field]);
    }
    if (at_.epoch * kEpochSteps + at_.step >= nan_from_) {
      batch.set("x", made["x"] * std::nan(""));
    }
    ++at_.step;
    return batch;
  }

 private:
  core::Position at_;
  std::function<void(core::Position)> before_;
  std::int64_t nan_from_;
};

class Emitted final : public core::EventEmitter {
 public:
  void emit(core::Event event) override {
    if (const auto* finding = std::get_if<core::Finding>(&event)) {
      findings.push_back(finding->text);
    } else if (const auto* evaluating = std::get_if<core::Evaluating>(&event)) {
      shares.emplace_back(evaluating->done, evaluating->samples);
    } else if (const auto* step = std::get_if<core::StepFinished>(&event)) {
      step_seconds.push_back(step->seconds);
    } else if (const auto* evaluated = std::get_if<core::Evaluated>(&event)) {
      best.push_back(evaluated->best);
    }
  }
  Log findings;
  std::vector<double> step_seconds;
  std::vector<bool> best;
  std::vector<std::pair<std::int64_t, std::int64_t>> shares;
};

// A run that can be resumed. It logs evaluations and checkpoints in order.
struct Rig {
  Rig() : optimizer(optim::make_optimizer({.name = "sgd"}, model.parameters())), scaler({.scaling = false}, at::kCPU) {}

  // interrupt_at: the evaluation at this step is abandoned, as after a signal.
  LoopEnd run(const Plan& plan, std::int64_t last_step, std::int64_t interrupt_at = -1) {
    core::State saved;  // as a checkpoint would bring it back
    progress.save_state(saved);
    progress.load_state(saved);
    ToySource source(progress.position, before_batch, nan_from);
    Step step({.model = model, .optimizer = *optimizer, .scaler = scaler, .ranks = ranks},
              {.optimizer_in_backward = in_backward});
    device::ScalarRing ring(at::kCPU, step.scalar_names().size());
    testing::ToyOwner owner;
    const auto evaluate = [&]() -> std::vector<core::MetricValue> {
      if (progress.step == interrupt_at) {
        owner.stop = signals;
        return {};
      }
      log.push_back("evaluated " + std::to_string(progress.step));
      return {{"accuracy", 0.5, true}, {"loss", val_loss, false}};
    };
    if (validates) {
      owner.on_evaluate = evaluate;
    }
    owner.on_save = [&](const char* kind) {
      time += save_seconds;
      if (kind == refused) {
        fail<IoError>("test", "the disk is full");
      }
      log.push_back(kind + (" " + std::to_string(progress.step)));
    };
    owner.on_begin = [&] { time += watch_seconds; };
    owner.on_step_done = [&] { time += 4 * watch_seconds; };
    owner.on_computed = [&] {
      time += 2 * watch_seconds;
      if (progress.step == broken_at) {
        fail<Error>("test", "the owner failed");
      }
    };
    owner.on_rescue = [&] { log.push_back("rescued " + std::to_string(progress.step)); };
    FeedWatch feed(source, events, [this] { return time; });
    Recovery recovery({.microbatch = {.asked = plan.microbatch}, .events = &events});
    const LoopParts parts{.source = source,
                          .step = step,
                          .progress = progress,
                          .recovery = recovery,
                          .scalars = ring,
                          .events = events,
                          .feed = feed,
                          .ranks = ranks,
                          .owner = owner};
    const LoopEnd end = run_loop(parts, plan, last_step);
    fed = feed.total(progress.step);
    return end;
  }

  ToyTrainable model{at::kFloat};
  core::SingleRank ranks;
  std::unique_ptr<optim::Optimizer> optimizer;
  precision::GradScaler scaler;
  Progress progress;
  Emitted events;
  Log log;
  bool signals = true;
  bool validates = true;
  double val_loss = 1;
  std::string refused;                   // kind of checkpoint that cannot be saved
  double time = 1000, save_seconds = 0;  // wall-clock time; duration of a save
  double watch_seconds = 0;              // 7 of these in a step: what the owner watches
  std::function<void(core::Position)> before_batch;
  std::int64_t nan_from = std::numeric_limits<std::int64_t>::max();  // first step whose samples are NaN
  bool in_backward = false;                                          // the optimizer
  std::int64_t broken_at = -1;                                       // the owner fails between compute and commit
  core::Fed fed;
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

TEST(Loop, WhatTheOwnerWatchesIsLogging) {
  Rig rig;
  rig.watch_seconds = 0.25;
  (void)rig.run(toy_plan(), 3);
  for (const core::StageFigures& stage : rig.fed.consumer) {
    EXPECT_EQ(stage.seconds, stage.name == "log" ? 3 * 7 * 0.25 : 0) << stage.name;
  }
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

// If a run is extended, the evaluation at its former end is no longer due.
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

// The loop's error message; empty if it did not fail.
std::string error_of(Rig& rig, const Plan& plan, std::int64_t last_step) {
  try {
    rig.run(plan, last_step);
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

TEST(Loop, StepsSinceTheLastCheckpointAreSavedBeforeAnErrorEndsIt) {
  const auto fails_at = [](Rig& rig, core::Position where, const std::function<void()>& how) {
    rig.before_batch = [=](core::Position at) {
      if (at.epoch == where.epoch && at.step == where.step) {
        how();
      }
    };
  };
  const auto data_error = [] { fail<DataError>("test", "a sample is gone"); };
  Rig rig;
  fails_at(rig, {1, 2}, data_error);
  EXPECT_THAT(error_of(rig, toy_plan(), 10), HasSubstr("a sample is gone"));
  EXPECT_EQ(rig.log.back(), "rescued 6");
  EXPECT_EQ(rig.progress.position.step, 2);

  Rig saved;  // at an epoch's end: nothing came after the checkpoint
  fails_at(saved, {1, 0}, data_error);
  EXPECT_THAT(error_of(saved, toy_plan(), 10), HasSubstr("a sample is gone"));
  EXPECT_EQ(saved.log.back(), "last 4");

  Rig fresh;  // nothing was trained
  fails_at(fresh, {0, 0}, data_error);
  EXPECT_THAT(error_of(fresh, toy_plan(), 10), HasSubstr("a sample is gone"));
  EXPECT_TRUE(fresh.log.empty());

  Rig lost;  // nothing can be copied from a device that failed
  fails_at(lost, {1, 2}, [] { throw c10::AcceleratorError({}, 719, "CUDA error: unspecified launch failure"); });
  EXPECT_THAT(error_of(lost, toy_plan(), 10), HasSubstr("unspecified launch failure"));
  EXPECT_EQ(lost.log.back(), "last 4");

  Rig full;  // it can be if only its memory was too small
  fails_at(full, {1, 2}, [] { throw c10::AcceleratorError({}, 2, "CUDA error: out of memory"); });
  EXPECT_THAT(error_of(full, toy_plan(), 10), HasSubstr("out of memory"));
  EXPECT_EQ(full.log.back(), "rescued 6");
}

TEST(Loop, ABestThatCouldNotBeSavedIsNotRememberedAsOne) {
  Rig rig;
  rig.refused = "best";
  EXPECT_THAT(error_of(rig, toy_plan(), 8), HasSubstr("the disk is full"));
  EXPECT_EQ(rig.log.back(), "rescued 4");
  EXPECT_TRUE(std::isnan(rig.progress.best_metric));
  rig.refused.clear();
  rig.log.clear();
  rig.run(toy_plan(), 8);
  EXPECT_THAT(rig.log, ::testing::Contains("evaluated 4"));
  EXPECT_THAT(rig.log, ::testing::Contains("best 4"));
}

// Fails in the middle of the parameters.
class HalfStep final : public optim::Optimizer {
 public:
  void set_lr(double) override {}
  void step(const at::Tensor&, const at::Tensor&) override {
    if (++steps_ == 3) {
      fail<Error>("test", "half a step");
    }
  }
  [[nodiscard]] std::int64_t state_bytes() const override { return 0; }
  void save_state(core::State&) const override {}
  void load_state(const core::State&) override {}

 private:
  int steps_ = 0;
};

TEST(Loop, ParametersOfNoStepAreNotSaved) {
  Rig rig;
  rig.optimizer = std::make_unique<HalfStep>();
  EXPECT_THAT(error_of(rig, toy_plan(), 10), HasSubstr("half a step"));
  EXPECT_EQ(rig.progress.step, 2);
  EXPECT_TRUE(rig.log.empty());
}

// Fails after a whole step, between two parameters.
class HalfBackward final : public optim::Optimizer {
 public:
  void set_lr(double) override {}
  void step(const at::Tensor&, const at::Tensor&) override { ADD_FAILURE() << "a step after backward"; }
  void count_step() override { ++steps_; }
  void update(const at::Tensor&) override {
    if (++updates_ == 6) {  // the second of four parameters in step 2
      fail<Error>("test", "half a step");
    }
  }
  [[nodiscard]] std::int64_t state_bytes() const override { return 0; }
  void save_state(core::State&) const override {}
  void load_state(const core::State&) override {}

 private:
  int steps_ = 0, updates_ = 0;
};

TEST(Loop, AStepTornInBackwardIsNotSaved) {
  Rig rig;
  rig.in_backward = true;
  rig.optimizer = std::make_unique<HalfBackward>();
  EXPECT_THAT(error_of(rig, toy_plan(), 10), HasSubstr("half a step"));
  EXPECT_EQ(rig.progress.step, 1);
  EXPECT_TRUE(rig.log.empty());

  for (const bool in_backward : {false, true}) {  // between compute and commit
    Rig between;
    between.in_backward = in_backward;
    between.broken_at = 2;
    EXPECT_THAT(error_of(between, toy_plan(), 10), HasSubstr("the owner failed"));
    EXPECT_EQ(between.log, in_backward ? Log{} : Log{"rescued 2"});
  }

  Rig whole;  // nothing has changed when the loss is known
  whole.in_backward = true;
  whole.nan_from = 2;
  EXPECT_THAT(error_of(whole, toy_plan(), 10), AllOf(HasSubstr("step 3, whose batch of"), HasSubstr("began with row"),
                                                     HasSubstr(": the loss is nan in")));
  EXPECT_EQ(whole.log, (Log{"rescued 2"}));
}

TEST(Loop, ARunThatEndsWithALossOfNaNHasFailed) {
  Rig rig;  // fewer steps than skip_limit
  rig.validates = false;
  rig.nan_from = 3;
  Plan plan = toy_plan();
  plan.skip_limit = 10;
  EXPECT_THAT(error_of(rig, plan, 5),
              AllOf(HasSubstr("ended with a loss of nan at step 5"), HasSubstr("2 steps in a row were not finite"),
                    HasSubstr("began with row 0, row 1, row 2")));
  EXPECT_EQ(rig.log, (Log{"last 4", "rescued 5"}));
  EXPECT_THAT(error_of(rig, plan, 5), HasSubstr("ended with a loss of nan at step 5")) << "nothing has changed since";

  Rig broken;  // the model itself
  broken.val_loss = std::nan("");
  EXPECT_THAT(error_of(broken, plan, 5), HasSubstr("a loss of nan on validation after step 5"));
  EXPECT_THAT(broken.events.best, ElementsAre(false, false)) << "an accuracy with a loss of NaN is not a gain";
  EXPECT_EQ(broken.log, (Log{"evaluated 4", "last 4", "evaluated 5", "rescued 5"}));
  EXPECT_EQ(broken.progress.evaluated_step, 4) << "otherwise a resume would succeed";
  EXPECT_THAT(error_of(broken, plan, 5), HasSubstr("a loss of nan on validation after step 5"));

  Rig sample;  // a sample of the last batch, while the model is fine
  sample.nan_from = 4;
  EXPECT_EQ(error_of(sample, plan, 5), "");
  EXPECT_EQ(sample.log.back(), "last 5");
}

TEST(Loop, NeitherASaveNorAnEvaluationIsAStepsTime) {
  Rig rig;
  rig.save_seconds = 100;
  rig.before_batch = [&](core::Position) { rig.time += 1; };
  Plan plan = toy_plan();
  plan.save_every = 2;
  plan.eval_every = 3;
  EXPECT_EQ(rig.run(plan, 7), LoopEnd::kDone);
  EXPECT_THAT(rig.events.step_seconds, ::testing::Each(1.0));
  EXPECT_EQ(rig.events.step_seconds.size(), 7U);
  std::map<std::string, double> spent;
  for (const core::StageFigures& stage : rig.fed.consumer) {
    spent[stage.name] = stage.seconds;
  }
  EXPECT_EQ(spent["checkpoint"], 100 * 5) << "last at 2, 4, 6 and 7, best at 3";
  EXPECT_EQ(spent["step"], 0);
}

// Scalars of a slow device.
class SlowScalars final : public core::PendingScalars {
 public:
  explicit SlowScalars(double& time) : time_(time) {}
  [[nodiscard]] core::Scalars read() const override {
    time_ += 2;
    return {{}, 8};
  }

 private:
  double& time_;
};

TEST(Loop, WaitingForTheDeviceIsNotLogging) {
  Emitted events;
  ToySource source({});
  ToyTrainable model(at::kFloat);
  Step step(model, {.name = "sgd"});
  Progress progress;
  device::ScalarRing ring(at::kCPU, step.scalar_names().size());
  double time = 0;
  FeedWatch feed(source, events, [&] { return time; });
  testing::ToyOwner owner;
  core::SingleRank ranks;
  Recovery recovery({});
  const LoopParts parts{.source = source,
                        .step = step,
                        .progress = progress,
                        .recovery = recovery,
                        .scalars = ring,
                        .events = events,
                        .feed = feed,
                        .ranks = ranks,
                        .owner = owner};
  SkipWatch skips(parts, 10, /*lag=*/1);
  feed.start();
  skips.watch(1, std::make_shared<SlowScalars>(time), {0});
  EXPECT_EQ(time, 0) << "one step may still be under way";
  skips.watch(2, std::make_shared<SlowScalars>(time), {1});
  EXPECT_EQ(time, 2);
  skips.finish();
  EXPECT_EQ(time, 4);
  for (const core::StageFigures& stage : feed.total(2).consumer) {
    EXPECT_EQ(stage.seconds, stage.name == "device wait" ? 4 : 0) << stage.name;
  }
}

TEST(EvaluationWatch, GivesUpBetweenBatchesAndSaysHowFarItIs) {
  Emitted events;
  ToyTrainable model(at::kFloat);
  int asked = 0;
  const auto evaluate_until = [&](int give_up_after) {
    asked = 0;
    ToySource source({});
    EvaluationWatch watch(events, {7, "val", 0, 12}, [&] {
      const Stopwatch slow;  // a slow batch
      while (slow.seconds() < 0.6 * core::kQuietSeconds) {
      }
      return ++asked > give_up_after;
    });
    const auto totals = evaluate(model, source, at::kFloat, {.go_on = std::ref(watch)});
    EXPECT_EQ(watch.gave_up(), totals.empty());
    return totals;
  };
  EXPECT_TRUE(evaluate_until(1).empty());
  EXPECT_EQ(asked, 2);
  const auto totals = evaluate_until(100);
  ASSERT_FALSE(totals.empty());
  EXPECT_EQ(totals[1].tensor.item<std::int64_t>(), 12);
  EXPECT_EQ(asked, 4);
  ASSERT_FALSE(events.shares.empty());
  EXPECT_LT(events.shares.size(), 6U);  // not one per batch
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
