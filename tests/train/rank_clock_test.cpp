// SPDX-License-Identifier: Apache-2.0
// The times that ranks tell each other: by hand on a clock of the test, and over Gloo, where a rank whose source or
// whose model sleeps is found, and none if all sleep alike.
#include "stoker/train/rank_clock.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <mutex>
#include <thread>

#include "stoker/core/phase.h"
#include "stoker/observe/straggler.h"
#include "stoker/optim/optimizer.h"
#include "stoker/precision/grad_scaler.h"
#include "stoker/train/loop.h"
#include "stoker/train/step.h"
#include "support/gloo_ranks.h"
#include "support/toy_owner.h"
#include "support/toy_trainable.h"

namespace stoker::train {
namespace {

using core::Phase;
using observe::Straggler;
using Fields = std::array<double, RankClock::kFields>;

// A rank whose time is that of the test.
class ByHand {
 public:
  ByHand() : book_([this] { return now_; }) { book_.open(); }
  void spend(Phase phase, double seconds) {
    const core::PhaseScope scope(phase);
    now_ += seconds;
  }
  // The exchange at the end of a step: work of its own before the message, then waiting.
  Fields exchange(double own, double waiting) {
    const core::PhaseScope scope(Phase::kExchange);
    clock_.begin();
    now_ += own;
    Fields fields{};
    clock_.arrive(fields.data());
    now_ += waiting;
    clock_.end();
    return fields;
  }

  RankClock& clock() { return clock_; }

 private:
  double now_ = 100;
  core::PhaseBook book_;
  RankClock clock_{2};
};

TEST(RankClock, DividesTheTimeBetweenMessages) {
  std::vector<Fields> told[2];
  RankClock all(2);
  for (int rank = 0; rank < 2; ++rank) {
    ByHand self;
    for (int step = 0; step < 3; ++step) {
      self.spend(Phase::kInput, rank == 0 ? 1 : 4);  // rank 1 is 3 s late with its data,
      self.spend(Phase::kExchange, rank == 0 ? 3.5 : 0.5);
      self.spend(Phase::kForward, rank == 0 ? 8 : 6);  // and 2 s early with its passes
      told[rank].push_back(self.exchange(1, rank == 0 ? 0.25 : 2.25));
      self.spend(Phase::kUpdate, 1);
      self.spend(Phase::kCheckpoint, rank == 0 ? 5 : 0);
      self.spend(Phase::kEvaluation, 1000);  // is no time of steps
      self.spend(Phase::kExchange, rank == 0 ? 0 : 5);
    }
  }
  for (int step = 0; step < 3; ++step) {
    for (int rank = 0; rank < 2; ++rank) {
      all.heard(rank, told[rank][static_cast<std::size_t>(step)].data());
    }
    all.heard_all();
  }
  const core::RankTimes& sums = all.sums();
  EXPECT_EQ(sums.steps, 2) << "from message to message";
  EXPECT_NEAR(sums.seconds, 2 * 19.75, 1e-9);
  EXPECT_NEAR(sums.exposed, 2 * (3.5 + 0.25), 1e-9) << "of both ranks, before the passes: 3.5 s with the checkpoint";
  ASSERT_EQ(sums.ranks.size(), 2);
  EXPECT_NEAR(sums.ranks[0].data, 2, 1e-9);
  EXPECT_NEAR(sums.ranks[0].saving, 10, 1e-9);
  EXPECT_NEAR(sums.ranks[0].computed, 20, 1e-9);
  EXPECT_NEAR(sums.ranks[0].waited, 0, 1e-9);
  EXPECT_NEAR(sums.ranks[1].data, 8, 1e-9);
  EXPECT_NEAR(sums.ranks[1].saving, 0, 1e-9);
  EXPECT_NEAR(sums.ranks[1].computed, 16, 1e-9);
  EXPECT_NEAR(sums.ranks[1].waited, 2 * (2 + 2), 1e-9);
}

// In a loop by hand nobody books where the time goes.
TEST(RankClock, WithoutABookDataIsUnknown) {
  RankClock clock(1);
  Fields fields{};
  for (int step = 0; step < 2; ++step) {
    clock.begin();
    clock.arrive(fields.data());
    clock.heard(0, fields.data());
    clock.heard_all();
    clock.end();
  }
  EXPECT_EQ(clock.sums().steps, 1);
  EXPECT_EQ(clock.sums().ranks[0].data, -1);
  EXPECT_EQ(clock.sums().ranks[0].saving, -1);
}

constexpr auto kUsual = std::chrono::milliseconds(5), kSlow = std::chrono::milliseconds(60);
constexpr int kSteps = 12;

class SleepingSource final : public core::BatchSource {
 public:
  SleepingSource(const core::Communicator& ranks, std::chrono::milliseconds pause)
      : rank_(ranks.rank()), ranks_(ranks.size()), pause_(pause) {}
  [[nodiscard]] std::optional<core::Batch> next() override {
    std::this_thread::sleep_for(pause_);
    return testing::toy_batch(12, at::kDouble).slice(12 * rank_ / ranks_, 12 * (rank_ + 1) / ranks_);
  }

 private:
  int rank_, ranks_;
  std::chrono::milliseconds pause_;
};

class SleepingModel final : public testing::ToyTrainable {
 public:
  explicit SleepingModel(std::chrono::milliseconds pause) : pause_(pause) {}
  [[nodiscard]] core::TensorList forward_segment(int segment, core::TensorList values) override {
    std::this_thread::sleep_for(pause_);
    return ToyTrainable::forward_segment(segment, std::move(values));
  }

 private:
  std::chrono::milliseconds pause_;
};

struct NoEvents final : core::EventEmitter {
  void emit(core::Event) override {}
};

// Of rank 1; the others are as usual.
struct Pauses {
  std::chrono::milliseconds data = kUsual, compute = kUsual;
};

// What rank 0 has heard after kSteps steps of the loop.
core::RankTimes times_of(int size, const Pauses& pauses) {
  core::RankTimes times;
  const auto errors = testing::run_over_gloo(size, [&](core::Communicator& ranks) {
    const Pauses own = ranks.rank() == 1 ? pauses : Pauses();
    SleepingModel model(own.compute);
    SleepingSource source(ranks, own.data);
    const auto optimizer = optim::make_optimizer({.name = "sgd"}, model.parameters());
    precision::GradScaler scaler({.scaling = false}, at::kCPU);
    Step step({.model = model, .optimizer = *optimizer, .scaler = scaler, .ranks = ranks}, {});
    Progress progress;
    device::ScalarRing ring(at::kCPU, step.scalar_names().size());
    NoEvents events;
    FeedWatch feed(source, events);
    testing::ToyOwner owner;
    Plan plan;
    plan.device = "cpu";
    plan.save_every = plan.eval_every = 1000;
    Recovery recovery({.events = &events});
    const LoopParts parts{.source = source,
                          .step = step,
                          .progress = progress,
                          .recovery = recovery,
                          .scalars = ring,
                          .events = events,
                          .feed = feed,
                          .ranks = ranks,
                          .owner = owner};
    EXPECT_EQ(run_loop(parts, plan, kSteps), LoopEnd::kDone);
    if (ranks.rank() == 0) {
      times = step.rank_times();
    }
  });
  EXPECT_THAT(errors, ::testing::Each(""));
  return times;
}

TEST(RankClock, NamesARankWhoseSourceSleeps) {
  for (const int size : {2, 3}) {
    const core::RankTimes times = times_of(size, {.data = kSlow});
    const Straggler found = observe::find_straggler(times);
    EXPECT_EQ(times.steps, kSteps) << "between their messages, and one by which the ranks agreed on their passes";
    EXPECT_EQ(found.rank, 1) << found.words;
    EXPECT_EQ(found.cause, Straggler::Cause::kData) << found.words;
    EXPECT_GT(times.ranks[0].waited, kSteps * 0.03) << "rank 0 waits 55 ms a step";
    EXPECT_GT(times.ranks[1].data, (kSteps - 1) * 0.06);
  }
}

TEST(RankClock, NamesARankWhoseModelSleeps) {
  for (const int size : {2, 3}) {
    const core::RankTimes times = times_of(size, {.compute = kSlow});
    const Straggler found = observe::find_straggler(times);
    EXPECT_EQ(found.rank, 1) << found.words;
    EXPECT_EQ(found.cause, Straggler::Cause::kCompute) << found.words;
    EXPECT_GT(times.ranks[0].waited, kSteps * 0.03);
    EXPECT_GT(times.ranks[1].computed, (kSteps - 1) * 0.06);
  }
}

// But one whose core the kernel gave to others, if this machine is busy.
TEST(RankClock, NamesNoRankIfAllSleepAlike) {
  const core::RankTimes times = times_of(2, {});
  const Straggler found = observe::find_straggler(times);
  EXPECT_TRUE(found.rank == -1 || found.cause == Straggler::Cause::kHost) << found.words;
  EXPECT_GT(times.seconds, (kSteps - 1) * 0.01);
}

}  // namespace
}  // namespace stoker::train
