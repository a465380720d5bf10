// SPDX-License-Identifier: Apache-2.0
// How the loop spends its time, in each stretch of time and in total. The clock and the source are set by hand.
#include "stoker/train/feed_watch.h"

#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "stoker/core/phase.h"

namespace stoker::train {
namespace {

class FakeSource final : public core::BatchSource {
 public:
  [[nodiscard]] std::optional<core::Batch> next() override { return std::nullopt; }
  [[nodiscard]] std::optional<core::SourceFigures> figures() const override { return now; }
  // Like a source that has worked on `samples` more samples, for 1/8 s each.
  void work(std::int64_t samples) {
    const double seconds = static_cast<double>(samples) / 8;
    now->samples += samples;
    now->stages.resize(1);
    now->stages[0].name = "read";
    now->stages[0].seconds += seconds;
    now->copy_seconds += seconds / 2;
  }
  std::optional<core::SourceFigures> now = core::SourceFigures();
};

struct FedEvents final : core::EventEmitter {
  void emit(core::Event event) override { all.push_back(std::get<core::Fed>(event)); }
  std::vector<core::Fed> all;
};

using Seconds = std::map<std::string, double>;

Seconds by_name(const std::vector<core::StageFigures>& stages) {
  Seconds result;
  for (const core::StageFigures& stage : stages) {
    result[stage.name] = stage.seconds;
  }
  return result;
}

class FeedWatchTest : public ::testing::Test {
 protected:
  void in(core::Phase phase, double seconds) {
    const core::PhaseScope scope(phase);
    time_ += seconds;
  }

  FakeSource source_;
  FedEvents emitted_;
  double time_ = 1000;
  FeedWatch watch_{source_, emitted_, [this] { return time_; }};
};

TEST_F(FeedWatchTest, TellsEachStretchOfTimeAndTheWhole) {
  source_.work(80);
  source_.now->threads = 2;
  in(core::Phase::kEvaluation, 50);  // made up for before the loop
  watch_.start();

  in(core::Phase::kInput, 0.25);
  in(core::Phase::kCopy, 0.25);
  EXPECT_EQ(watch_.waited(), 0.5);
  in(core::Phase::kBackward, 1.25);
  watch_.step_done(1);
  EXPECT_TRUE(emitted_.all.empty()) << "too early for a report";
  in(core::Phase::kLogging, 0.25);
  source_.work(40);
  source_.now->threads = 3;
  watch_.step_done(2);
  ASSERT_EQ(emitted_.all.size(), 1U);
  EXPECT_EQ(emitted_.all[0].step, 2);
  EXPECT_EQ(emitted_.all[0].seconds, 2);
  EXPECT_EQ(emitted_.all[0].waited_seconds, 0.5);
  EXPECT_EQ(emitted_.all[0].source.samples, 40);
  EXPECT_EQ(emitted_.all[0].source.threads, 3);
  EXPECT_EQ(emitted_.all[0].source.copy_seconds, 2.5);
  EXPECT_EQ(by_name(emitted_.all[0].source.stages), (Seconds{{"read", 5}}));
  EXPECT_EQ(by_name(emitted_.all[0].consumer),
            (Seconds{{"step", 1.25}, {"device wait", 0}, {"log", 0.25}, {"checkpoint", 0}, {"evaluation", 0}}));

  watch_.step_done(3);
  EXPECT_EQ(emitted_.all.size(), 1U) << "reported just before";
  in(core::Phase::kDeviceWait, 0.25);
  in(core::Phase::kCheckpoint, 1);
  in(core::Phase::kEvaluation, 0.5);
  source_.work(8);
  time_ += 1.25;
  watch_.step_done(4);
  ASSERT_EQ(emitted_.all.size(), 2U);
  EXPECT_EQ(emitted_.all[1].step, 4);
  EXPECT_EQ(emitted_.all[1].seconds, 3);
  EXPECT_EQ(emitted_.all[1].waited_seconds, 0);
  EXPECT_EQ(emitted_.all[1].source.samples, 8);
  EXPECT_EQ(by_name(emitted_.all[1].source.stages), (Seconds{{"read", 1}}));
  EXPECT_EQ(by_name(emitted_.all[1].consumer),
            (Seconds{{"step", 1.25}, {"device wait", 0.25}, {"log", 0}, {"checkpoint", 1}, {"evaluation", 0.5}}));

  in(core::Phase::kForward, 1);
  watch_.stop();
  time_ += 100;  // after the loop
  const core::Fed whole = watch_.total(5);
  EXPECT_EQ(emitted_.all.size(), 2U);
  EXPECT_EQ(whole.step, 5);
  EXPECT_EQ(whole.seconds, 6);
  EXPECT_EQ(whole.waited_seconds, 0.5);
  EXPECT_EQ(whole.source.samples, 48);
  EXPECT_EQ(by_name(whole.source.stages), (Seconds{{"read", 6}}));
  EXPECT_EQ(by_name(whole.consumer),
            (Seconds{{"step", 3.5}, {"device wait", 0.25}, {"log", 0.25}, {"checkpoint", 1}, {"evaluation", 0.5}}));
}

TEST_F(FeedWatchTest, ASourceMayTellNothing) {
  source_.now.reset();
  watch_.start();
  in(core::Phase::kInput, 1);
  time_ += 1;
  watch_.step_done(1);
  ASSERT_EQ(emitted_.all.size(), 1U);
  EXPECT_EQ(emitted_.all[0].waited_seconds, 1);
  EXPECT_EQ(emitted_.all[0].source.samples, 0);
  EXPECT_TRUE(emitted_.all[0].source.stages.empty());
}

}  // namespace
}  // namespace stoker::train
