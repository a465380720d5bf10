// SPDX-License-Identifier: Apache-2.0
#include "stoker/io/loggers/progress_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <sstream>

#include "stoker/base/error.h"
#include "stoker/io/loggers/progress_figures.h"

namespace stoker::io {
namespace {

using namespace core;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class Known final : public PendingScalars {
 public:
  explicit Known(float loss) : loss_(loss) {}
  [[nodiscard]] Scalars read() const override {
    Scalars scalars;
    scalars.values[0] = loss_;
    scalars.count = 1;
    return scalars;
  }

 private:
  float loss_;
};

RunStarted start() {
  RunStarted event;
  event.folder = "runs/x";
  event.title = "small_cnn on demo, cpu";
  event.scalars = {"loss"};
  event.epochs = 3;
  event.steps_per_epoch = 40;
  event.last_step = 120;
  return event;
}

StepFinished step(std::int64_t number, float loss) {
  StepFinished event;
  event.position = {(number - 1) / 40, (number - 1) % 40};
  event.step = number;
  event.samples = 128;
  event.seconds = 0.6;
  event.data_wait_seconds = 0.05;
  event.lr = 0.01;
  event.memory_bytes = 1'234'000'000;
  event.scalars = std::make_shared<Known>(loss);
  return event;
}

Evaluated evaluated() {
  return {.position = {0, 39},
          .step = 40,
          .split = "val",
          .metrics = {{"accuracy", 0.73125, true}, {"loss", 0.8, false}},
          .seconds = 1,
          .best = true};
}

// A progress line with its own clock and screen.
struct Screen {
  explicit Screen(ProgressMode mode, int columns = 200, bool utf8 = false) {
    ProgressOptions options;
    options.mode = mode;
    options.out = &text;
    options.width = [columns] { return columns; };
    options.utf8 = utf8;
    options.explain = [this](const Fed&) { return late; };
    options.clock = [this] { return time; };
    line = std::make_unique<ProgressLine>(std::move(options));
  }
  // The output since the last call.
  std::string take() {
    std::string result = text.str();
    text.str("");
    return result;
  }

  std::ostringstream text;
  double time = 100;
  FeedWords late;  // the words to show about late data
  std::unique_ptr<ProgressLine> line;
};

TEST(ProgressLine, SaysWhereTheTimeWent) {
  for (const ProgressMode mode : {ProgressMode::kPlain, ProgressMode::kQuiet}) {
    std::ostringstream text;
    ProgressOptions options;
    options.mode = mode;
    options.out = &text;
    options.where_time_went = [](const Anatomy& event) { return event.whole ? std::string("a table") : ""; };
    ProgressLine line(std::move(options));
    line.on(Anatomy{});
    EXPECT_EQ(text.str(), "") << "a period";
    line.on(Anatomy{.whole = true, .phases = {}, .marks = {}});
    EXPECT_EQ(text.str(), mode == ProgressMode::kQuiet ? "" : "a table\n");
  }
}

// The slowest rank is named in the line, and once in a sentence; the table of all ranks comes at the end.
TEST(ProgressLine, NamesTheSlowestRank) {
  std::ostringstream text;
  double time = 100;
  FeedWords words;
  ProgressOptions options;
  options.out = &text;
  options.clock = [&] { return time; };
  options.ranks = [&](const RankTimes&) { return words; };
  ProgressLine line(std::move(options));
  const auto told = [&](const Event& event) {
    text.str("");
    line.on(event);
    return text.str();
  };
  EXPECT_EQ(told(RankTimes{}), "");
  words = {"slowest rank 3, data", "rank 3 is slowest"};
  EXPECT_EQ(told(RankTimes{}), "rank 3 is slowest\n");
  EXPECT_EQ(told(RankTimes{}), "");
  EXPECT_THAT(told(step(1, 1)), ::testing::HasSubstr("  slowest rank 3, data"));
  words = {};
  EXPECT_EQ(told(RankTimes{}), "");
  time += 10;
  EXPECT_THAT(told(step(2, 1)), ::testing::Not(::testing::HasSubstr("slowest")));
  words = {"", "2 ranks: a table"};
  EXPECT_EQ(told(RankTimes{.whole = true, .ranks = {}, .hosts = {}, .buckets = {}}), "2 ranks: a table\n");
}

TEST(ProgressLine, OnATerminalOneLineIsRedrawn) {
  Screen screen(ProgressMode::kTerminal);
  screen.line->on(start());
  EXPECT_EQ(screen.take(), "small_cnn on demo, cpu: 3 epochs of 40 steps, in runs/x\n");
  screen.line->on(step(1, 2));
  EXPECT_EQ(screen.take(),
            "\repoch 1/3  [----------------]  1/40  loss 2 =  lr 0.01  213/s  1.2 GB  wait 8%  1:11 left\x1b[K");
  screen.time += 0.05;
  screen.line->on(step(2, 2));
  EXPECT_EQ(screen.take(), "");  // not yet
  screen.line->flush();
  EXPECT_THAT(screen.take(), HasSubstr("  2/40  "));
  screen.time += 0.11;
  screen.line->on(step(50, 1));
  EXPECT_THAT(screen.take(), HasSubstr("epoch 2/3  [====------------]  10/40  loss 1.631 v"));
  screen.line->on(evaluated());
  EXPECT_THAT(screen.take(),
              StartsWith("\r\x1b[Kepoch 1: val accuracy 0.7312, loss 0.8 (best so far)\n\repoch 2/3  [="));
  screen.line->on(CheckpointSaved{40, "p", "last"});
  EXPECT_EQ(screen.take(), "");
  screen.line->on(FaultSurvived{41, "non_finite", "skipped\x1b[2J"});
  EXPECT_THAT(screen.take(), HasSubstr("warning: step 41: skipped\\x1b[2J (non_finite)\n"));
  screen.line->on(RunFinished{120, "done", "val accuracy 0.73", 3725});
  EXPECT_EQ(screen.take(), "\r\x1b[Kdone: val accuracy 0.73 (1:02:05)\n");
}

TEST(ProgressLine, EndsInPlainWords) {
  for (const auto& [outcome, words] : {std::pair{"early_stop", "ended early: validation no longer improves (0:02)\n"},
                                       std::pair{"time_up", "ended at its time limit (0:02)\n"}}) {
    Screen screen(ProgressMode::kPlain);
    RunStarted one = start();
    one.epochs = one.steps_per_epoch = 1;
    screen.line->on(one);
    EXPECT_EQ(screen.take(), "small_cnn on demo, cpu: 1 epoch of 1 step, in runs/x\n");
    screen.line->on(RunFinished{1, outcome, "", 2});
    EXPECT_EQ(screen.take(), words);
  }
}

// The CPU's own NaN has its sign bit set.
TEST(ProgressLine, ANanHasNoSign) {
  Screen screen(ProgressMode::kTerminal);
  screen.line->on(start());
  screen.line->on(step(1, -std::numeric_limits<float>::quiet_NaN()));
  Evaluated not_finite = evaluated();
  not_finite.metrics = {{"loss", -std::numeric_limits<double>::quiet_NaN(), false}};
  screen.line->on(not_finite);
  EXPECT_THAT(screen.take(),
              ::testing::AllOf(HasSubstr("loss nan"), HasSubstr("val loss nan"), ::testing::Not(HasSubstr("-nan"))));
}

TEST(ProgressLine, EndsItsLineWhenTheRunBreaksOff) {
  Screen screen(ProgressMode::kTerminal);
  screen.line->on(start());
  screen.line->on(step(1, 2));
  screen.line.reset();
  EXPECT_TRUE(screen.text.str().ends_with("\x1b[K\n"));
}

TEST(ProgressLine, ALogFileGetsALineEachTenSeconds) {
  Screen screen(ProgressMode::kPlain, 20);
  screen.line->on(start());
  for (int i = 1; i <= 40; ++i) {  // one per second
    screen.line->on(step(i, 1));
    screen.time += 1;
  }
  screen.line->on(evaluated());
  screen.line->on(CheckpointSaved{40, "runs/x/checkpoints/last", "last"});
  screen.line->on(RunFinished{40, "stopped", "", 40});
  EXPECT_EQ(screen.take(),
            "small_cnn on demo, cpu: 3 epochs of 40 steps, in runs/x\n"
            "epoch 1/3  1/40  loss 1 =  lr 0.01  213/s  1.2 GB  wait 8%  1:11 left\n"
            "epoch 1/3  11/40  loss 1 =  lr 0.01  213/s  1.2 GB  wait 8%  1:05 left\n"
            "epoch 1/3  21/40  loss 1 =  lr 0.01  213/s  1.2 GB  wait 8%  0:59 left\n"
            "epoch 1/3  31/40  loss 1 =  lr 0.01  213/s  1.2 GB  wait 8%  0:53 left\n"
            "epoch 1: val accuracy 0.7312, loss 0.8 (best so far)\n"
            "saved the last checkpoint of step 40: runs/x/checkpoints/last\n"
            "stopped (0:40)\n");
}

TEST(ProgressLine, AnEvaluationThatTakesLongIsSeen) {
  Screen screen(ProgressMode::kTerminal, 50);
  screen.line->on(start());
  screen.line->on(Evaluating{0, "val", 0, 100});  // a resumed run may start with an evaluation
  EXPECT_THAT(screen.take(), ::testing::EndsWith("\rvalidating 0 %\x1b[K"));
  screen.line->on(step(40, 2));
  screen.time += 0.11;
  screen.line->on(Evaluating{40, "val", 37, 100});
  EXPECT_EQ(screen.take(), "\repoch 1/3  40/40  validating 37 %  loss 2 =\x1b[K");
  screen.time += 0.05;
  screen.line->on(Evaluating{40, "val", 60, 100});
  EXPECT_EQ(screen.take(), "");  // not yet
  screen.time += 0.11;
  screen.line->on(Evaluating{40, "test", 99, 100});
  EXPECT_THAT(screen.take(), HasSubstr("testing 99 %"));
  screen.line->on(evaluated());
  screen.time += 0.11;
  screen.line->on(step(41, 2));
  EXPECT_THAT(screen.take(), ::testing::Not(HasSubstr("testing")));

  Screen file(ProgressMode::kPlain);
  file.line->on(start());
  file.line->on(step(40, 2));
  file.take();
  for (int i = 1; i <= 20; ++i) {  // one per second
    file.time += 1;
    file.line->on(Evaluating{40, "val", i, 20});
  }
  EXPECT_THAT(file.take(), ::testing::MatchesRegex(".*validating 50 %.*\n.*validating 100 %.*\n"));
}

TEST(ProgressLine, LateDataIsSaidOncePerStageAndAgainAfterFiveMinutes) {
  Screen screen(ProgressMode::kPlain);
  const auto told = [&](const FeedWords& words) {
    screen.late = words;
    screen.line->on(Fed{});
    return screen.take();
  };
  const FeedWords jpeg{"JPEG decode", "data-starved 20 %: JPEG decode"}, read{"read", "data-starved 10 %: read"};
  EXPECT_EQ(told({}), "");
  EXPECT_EQ(told(jpeg), "data-starved 20 %: JPEG decode\n");
  screen.time += 299;
  EXPECT_EQ(told(jpeg), "");
  EXPECT_EQ(told({}), "");  // an interval without late data changes nothing
  screen.time += 1;
  EXPECT_EQ(told(jpeg), "data-starved 20 %: JPEG decode\n");
  EXPECT_EQ(told(read), "data-starved 10 %: read\n");
  screen.line->on(step(1, 1));
  EXPECT_THAT(screen.take(), ::testing::EndsWith("  wait 8% read\n"));
  EXPECT_EQ(told({}), "");
  screen.time += 10;
  screen.line->on(step(2, 1));
  EXPECT_THAT(screen.take(), ::testing::EndsWith("  wait 8%\n"));

  Screen quiet(ProgressMode::kQuiet);
  quiet.late = jpeg;
  quiet.line->on(Fed{});
  EXPECT_EQ(quiet.take(), "");
}

TEST(ProgressLine, QuietSaysWhatNeedsSaying) {
  Screen screen(ProgressMode::kQuiet);
  screen.line->on(start());
  screen.line->on(step(1, 1));
  screen.line->on(evaluated());
  screen.line->flush();
  EXPECT_EQ(screen.take(), "");
  screen.line->on(Finding{"one core is busy"});
  screen.line->on(FaultSurvived{2, "non_finite", "skipped"});
  screen.line->on(RunFinished{2, "done", "", 1});
  EXPECT_EQ(screen.take(), "note: one core is busy\nwarning: step 2: skipped (non_finite)\ndone (0:01)\n");
}

TEST(ProgressLine, JsonIsAnObjectALine) {
  Screen screen(ProgressMode::kJson);
  EXPECT_TRUE(screen.line->wants_every_step());
  screen.line->on(start());
  screen.line->on(step(1, 0.1F));
  Fed fed;
  fed.step = 1;
  fed.seconds = 2.5;
  fed.waited_seconds = 0.5;
  fed.source.samples = 40;
  fed.source.threads = 2;
  fed.source.stages = {{"read", 1.5}, {"PNG decode", std::numeric_limits<double>::quiet_NaN()}};
  fed.source.copy_seconds = 0.125;
  fed.consumer = {{"step", 1.75}, {"log", 0.25}};
  screen.line->on(fed);
  screen.line->on(CheckpointSaved{1, "p", "last"});
  EXPECT_EQ(
      screen.take(),
      R"({"event":"run_started","folder":"runs/x","title":"small_cnn on demo, cpu","scalars":["loss"],"epochs":3,)"
      R"("steps_per_epoch":40,"first_step":0,"last_step":120,"plan":[]})"
      "\n"
      R"({"event":"step","epoch":0,"step":1,"samples":128,"seconds":0.6,"data_wait":0.05,"lr":0.01,)"
      R"("memory_bytes":1234000000,"scalars":{"loss":0.1}})"
      "\n"
      R"({"event":"fed","step":1,"seconds":2.5,"waited":0.5,"samples":40,"threads":2,)"
      R"("loader":{"read":1.5,"PNG decode":"nan"},"copy":0.125,"consumer":{"step":1.75,"log":0.25}})"
      "\n"
      R"({"event":"checkpoint","step":1,"kind":"last","path":"p"})"
      "\n");
}

TEST(ProgressLine, NeedsAStream) { EXPECT_THROW(ProgressLine(ProgressOptions{}), ConfigError); }

int columns(const std::string& text) {
  return static_cast<int>(std::ranges::count_if(text, [](char c) { return (c & 0xC0) != 0x80; }));
}

TEST(ProgressFigures, FitsAnyWidthAndKeepsWhatMattersMost) {
  ProgressFigures figures;
  figures.start(start());
  EXPECT_EQ(figures.line({}), "");
  figures.evaluated(evaluated());
  figures.step(step(50, 1.5F));
  std::size_t longest = 0;
  for (int width = 12; width <= 140; ++width) {
    const std::string line = figures.line({width, true, true});
    EXPECT_LE(columns(line), width);
    EXPECT_GE(line.size(), longest);  // more room never shows less
    longest = std::max(longest, line.size());
    EXPECT_THAT(line, HasSubstr("loss 1.5 →"));
  }
  EXPECT_EQ(figures.line({140, true, true}),
            "epoch 2/3  ━━━━────────────  10/40  loss 1.5 →  val accuracy 0.7312  lr 0.01  213/s  1.2 GB  wait 8%  "
            "0:42 left");
  EXPECT_EQ(figures.line({40, true, true}), "epoch 2/3  10/40  loss 1.5 →  0:42 left");
}

TEST(ProgressFigures, ANanIsShownAndNotAveragedAway) {
  ProgressFigures figures;
  figures.start(start());
  figures.step(step(1, 1));
  figures.step(step(2, std::numeric_limits<float>::quiet_NaN()));
  EXPECT_THAT(figures.line({}), HasSubstr("loss nan"));
  figures.step(step(3, 1));
  EXPECT_THAT(figures.line({}), HasSubstr("loss 1 ="));
}

TEST(ProgressFigures, TheTrendFollowsTheLoss) {
  for (const int direction : {-1, 1}) {
    ProgressFigures figures;
    figures.start(start());
    for (int i = 1; i <= 100; ++i) {
      figures.step(step(i, 2 + 0.01F * static_cast<float>(direction * i)));
    }
    EXPECT_THAT(figures.line({}), HasSubstr(direction < 0 ? " v  " : " ^  "));
  }
}

TEST(ProgressFigures, WhatIsUnknownIsLeftOut) {
  ProgressFigures figures;
  figures.start({});
  StepFinished bare;
  bare.step = 7;
  figures.step(bare);
  EXPECT_EQ(figures.line({}), "epoch 1  step 7  lr 0");
}

TEST(ProgressFigures, Durations) {
  EXPECT_EQ(duration_text(7.4), "0:07");
  EXPECT_EQ(duration_text(754), "12:34");
  EXPECT_EQ(duration_text(12345), "3:25:45");
  EXPECT_EQ(duration_text(-1), "0:00");
  EXPECT_EQ(duration_text(std::numeric_limits<double>::infinity()), "?");
}

}  // namespace
}  // namespace stoker::io
