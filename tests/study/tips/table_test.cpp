// SPDX-License-Identifier: Apache-2.0
// Measures tips with known outcomes: the verdict words, rows that cannot be measured, how seconds are shared, stopping,
// names.
#include "stoker/study/tips/table.h"

#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "stoker/base/error.h"
#include "stoker/study/tips/report.h"

namespace stoker::study {
namespace {

using testing::HasSubstr;
using testing::Not;

Tip fake(std::string id, std::vector<std::string> models, Need need = Need::kNothing) {
  Tip tip;
  tip.id = std::move(id);
  tip.title = "title of " + tip.id;
  tip.without = "off", tip.with = "on";
  tip.need = need;
  tip.models = std::move(models);
  tip.make = [](const TipCase&, bool) { return Way{{[] {}}, {}}; };
  return tip;
}

// A clock that only the timer moves. The timer uses all of its seconds and returns a fixed ratio.
struct FakeTime {
  double now = 100;
  std::vector<double> asked;
  Ratio ratio{2, 1.5, 2.5, 9};

  [[nodiscard]] TipsOptions options(double seconds) {
    TipsOptions made;
    made.seconds = seconds;
    made.clock = [this] { return now; };
    made.timer = [this](const Side&, const Side&, const PairingOptions& pairing) {
      asked.push_back(pairing.seconds);
      now += pairing.seconds;
      return Paired{2, 1, ratio};
    };
    return made;
  }
};

TEST(TipsTable, TheWordIsThatOfTheWholeInterval) {
  const auto word = [](double low, double high, std::int64_t without = -1, std::int64_t with = -1) {
    return text_of(word_of({(low + high) / 2, low, high, 9}, without, with));
  };
  EXPECT_EQ(word(1.011, 1.5), "helps");
  EXPECT_EQ(word(1.009, 1.5), "no difference");
  EXPECT_EQ(word(0.5, 0.989), "hurts here");
  EXPECT_EQ(word(0.5, 0.991), "no difference");
  EXPECT_EQ(word(0.9, 1.1, 1000, 980), "helps (memory)");
  EXPECT_EQ(word(0.9, 1.1, 1000, 981), "no difference");
  EXPECT_EQ(word(0.9, 1.1, 1000, 1500), "no difference");
  EXPECT_EQ(word(0.9, 1.0, 1000, 500), "helps (memory)");
  EXPECT_EQ(word(0.9, 0.999, 1000, 500), "hurts here");  // bytes saved at the cost of time
  EXPECT_EQ(word(0.9, 0.999, 1000, 999), "no difference");
  EXPECT_EQ(word(0.5, 0.9, 1000, 500), "hurts here");  // time takes precedence
  EXPECT_EQ(word(1.1, 1.2, 1000, 1500), "helps");
  EXPECT_EQ(text_of(word_of({}, 1000, 500)), "not measured");
  EXPECT_EQ(text_of(word_of({std::nan(""), 1, 1, 9}, 1000, 500)), "not measured");
}

TEST(TipsTable, WaysOfKnownTimesAndBytes) {
  FakeTime time;
  Tip tip = fake("twice", {"cnn"});
  std::string calls;
  tip.make = [&](const TipCase&, bool with) {
    const auto held = std::make_shared<at::Tensor>(at::zeros({1000}));
    Way way;
    way.side.call = [held, with, &calls] {
      const at::Tensor peak = at::zeros({with ? 1000 : 9000});
      calls += with ? '+' : '-';
    };
    return way;
  };
  const std::vector<Tip> tips{tip};
  TipsOptions options = time.options(1);
  options.intra_op = 1;
  options.timer = [&](const Side& first, const Side& second, const PairingOptions&) {
    calls += '|';
    first.call();
    second.call();
    return Paired{0.3, 0.1, {3, 2.9, 3.1, 9}};
  };
  const TipsTable table = measure_tips(tips, options);
  EXPECT_EQ(calls, "---+++|-+") << "three calls measure the bytes of each way; the way without the tip comes first";
  const TipCell& cell = table.cells.at(0);
  EXPECT_EQ(text_of(cell.word), "helps");
  EXPECT_EQ(cell.ratio.median, 3);
  EXPECT_EQ(cell.bytes_without, 40'000);
  EXPECT_EQ(cell.bytes_with, 8'000);
  EXPECT_EQ(cell.seconds_without, 0.3);
  EXPECT_EQ(cell.seconds_with, 0.1);
  EXPECT_EQ(table.intra_op, 1);
}

TEST(TipsTable, SecondsAreSharedOutOverTheCellsThatAreLeft) {
  FakeTime time;
  const std::vector<Tip> tips{fake("a", {"cnn", "mlp"}), fake("gpu", {"cnn"}, Need::kGpu), fake("b", {"cnn", "gpt"})};
  std::vector<int> numbers;
  TipsOptions options = time.options(8);
  options.progress = [&](const TipsProgress& progress) {
    numbers.push_back(progress.cell);
    EXPECT_EQ(progress.cells, 4);
    EXPECT_DOUBLE_EQ(progress.seconds_left, 8 - 2 * (progress.cell - 1));
  };
  const TipsTable table = measure_tips(tips, options);
  EXPECT_EQ(time.asked, (std::vector<double>{2, 2, 2, 2}));
  EXPECT_EQ(numbers, (std::vector<int>{1, 2, 3, 4}));
  EXPECT_DOUBLE_EQ(table.seconds_taken, 8);
}

TEST(TipsTable, ACellThatTookLongerLeavesLessToTheOthersAndTheEndIsKept) {
  FakeTime time;
  std::vector<Tip> tips{fake("slow", {"cnn"}), fake("a", {"cnn", "mlp"})};
  tips[0].make = [&](const TipCase&, bool) {
    time.now += 2.5;  // to make each of the two models
    return Way{{[] {}}, {}};
  };
  (void)measure_tips(tips, time.options(9));
  EXPECT_EQ(time.asked, (std::vector<double>{0, 2, 2}));
  time.asked.clear();
  const TipsTable table = measure_tips(tips, time.options(3));  // the first cell exceeds the time by more than half
  EXPECT_EQ(time.asked, (std::vector<double>{0}));
  EXPECT_THAT(table.cells.at(1).note, HasSubstr("no time left"));
}

TEST(TipsTable, ARowThatIsFarSlowerTakesNoTimeFromTheOthers) {
  FakeTime time;
  std::vector<Tip> tips{fake("a", {"cnn", "mlp"}), fake("half", {"cnn", "unet"}), fake("b", {"cnn", "gpt"})};
  int slow_calls = 0;
  std::string order;
  const auto takes = [&](const Tip& tip, double without, double with) {
    return [&, without, with, id = tip.id](const TipCase&, bool on) {
      return Way{{[&, on, without, with, id] {
                   time.now += on ? with : without;
                   slow_calls += on && with > 1 ? 1 : 0;
                   order += order.ends_with(id) ? "" : " " + id;
                 }},
                 {}};
    };
  };
  tips[0].make = takes(tips[0], 0.02, 0.01);
  tips[1].make = takes(tips[1], 0.025, 5);  // 200 times as long, like float16 on a CPU
  tips[2].make = takes(tips[2], 0.02, 0.01);
  TipsOptions options = time.options(60);
  options.timer = [&](const Side& first, const Side& second, PairingOptions pairing) {
    time.asked.push_back(pairing.seconds);
    pairing.now = options.clock;
    return time_in_turns(first, second, pairing);
  };
  const TipsTable table = measure_tips(tips, options);
  for (const TipCell& cell : table.cells) {
    const bool slow = cell.tip->id == "half";
    EXPECT_EQ(text_of(cell.word), slow ? "hurts here" : "helps") << cell.tip->id << " " << cell.note;
    EXPECT_EQ(cell.ratio.pairs, slow ? 3 : 31) << cell.tip->id;
  }
  EXPECT_EQ(slow_calls, 2 * (1 + 2 + 3)) << "one call defers the cell, two measure its bytes, three are pairs";
  EXPECT_EQ(order, " a half b half") << "a cell that takes longer than its share is measured last";
  ASSERT_EQ(time.asked.size(), 6U);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_GT(time.asked[i], 8) << "60 s are six shares of 10 s, minus the time to find the slow cells";
  }
  EXPECT_LT(table.seconds_taken, 90);
}

TEST(TipsTable, WhatCannotBeMeasuredSaysWhy) {
  FakeTime time;
  std::vector<Tip> tips{fake("gpu", {"cnn", "mlp"}, Need::kGpu), fake("bad", {"cnn"}), fake("good", {"cnn"})};
  tips[1].make = [](const TipCase&, bool) -> Way { throw std::runtime_error("no such kernel\nat x.cpp"); };
  const TipsTable table = measure_tips(tips, time.options(1));
  ASSERT_EQ(table.cells.size(), 3U);
  EXPECT_EQ(table.cells[0].note, "needs a GPU");
  EXPECT_EQ(table.cells[1].note, "no such kernel");
  EXPECT_EQ(text_of(table.cells[2].word), "helps");
  const std::string text = tips_text(table);
  EXPECT_THAT(text, HasSubstr("not measured: needs a GPU"));
  EXPECT_THAT(text, HasSubstr("not measured: no such kernel"));
}

TEST(TipsTable, CpuTimeIsThatOfOneThread) {
  FakeTime time;
  std::vector<Tip> tips{fake("a", {"cnn"}), fake("threads", {"cnn"})};
  tips[1].own_threads = true;
  TipsOptions options = time.options(1);
  options.cpu_time = true;
  const auto timer = options.timer;
  options.timer = [&](const Side& a, const Side& b, const PairingOptions& pairing) {
    EXPECT_EQ(pairing.clock, Clock::kThreadCpu);
    return timer(a, b, pairing);
  };
  const TipsTable table = measure_tips(tips, options);
  EXPECT_EQ(table.intra_op, 1);
  EXPECT_EQ(table.cells.at(1).note, "needs wall time");
  options.intra_op = 2;
  EXPECT_THROW((void)measure_tips(tips, options), ConfigError);
  EXPECT_EQ(device_asked({.cpu_time = true, .device = "auto"}), "cpu");
  EXPECT_EQ(device_asked({.cpu_time = true, .device = "cuda"}), "cuda");  // refused later
  EXPECT_EQ(device_asked({.device = "auto"}), "auto");
}

TEST(TipsTable, WhereTheClockStandsStillNothingIsSaid) {
  FakeTime time;
  time.ratio = ratio_of(std::vector<double>{1, 1, 0, 1, 1, 1, 1}, std::vector<double>(7, 1));
  const std::vector<Tip> tips{fake("a", {"cnn"})};
  const TipsTable table = measure_tips(tips, time.options(1));
  EXPECT_THAT(tips_text(table), HasSubstr("not measured: too short for the clock"));
  EXPECT_FALSE(nlohmann::json::parse(tips_json(table))["tips"][0]["cells"][0].contains("ratio"));
}

TEST(TipsTable, StoppingKeepsWhatWasMeasured) {
  FakeTime time;
  const std::vector<Tip> tips{fake("a", {"cnn", "mlp", "gpt"})};
  TipsOptions options = time.options(3);
  options.stop = [&] { return time.asked.size() >= 2; };
  const auto timer = options.timer;
  options.timer = [&](const Side& a, const Side& b, const PairingOptions& pairing) {
    Paired paired = timer(a, b, pairing);
    paired.ratio.pairs = time.asked.size() == 2 ? 1 : 9;  // Ctrl-C in the middle of the second cell
    return paired;
  };
  const TipsTable table = measure_tips(tips, options);
  EXPECT_TRUE(table.stopped);
  EXPECT_EQ(text_of(table.cells.at(0).word), "helps");
  EXPECT_THAT(table.cells.at(1).note, HasSubstr("before enough pairs were measured"));
  EXPECT_THAT(table.cells.at(2).note, HasSubstr("stopped before it was measured"));
  EXPECT_THAT(tips_text(table), HasSubstr("Stopped early"));
}

TEST(TipsTable, NamesAreChosenAndUnknownOnesMeetTheNearest) {
  FakeTime time;
  const std::vector<Tip> tips{fake("channels-last", {"cnn", "unet"}), fake("tf32", {"cnn"})};
  TipsOptions options = time.options(1);
  options.models = {"unet"};
  options.tips = {"channels-last"};
  EXPECT_EQ(measure_tips(tips, options).cells.size(), 1U);
  options.models = {"uner"};
  try {
    (void)measure_tips(tips, options);
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("unknown model \"uner\"; did you mean \"unet\"?"));
  }
  options.models = {};
  options.tips = {"chanel-last"};
  try {
    (void)measure_tips(tips, options);
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("unknown tip \"chanel-last\"; did you mean \"channels-last\"?"));
  }
}

TEST(TipsTable, TipsAndModelsThatDoNotMeetAreRefused) {
  FakeTime time;
  const std::vector<Tip> tips{fake("fused-attention", {"bert", "gpt"}), fake("other", {"cnn"})};
  TipsOptions options = time.options(1);
  options.models = {"cnn"};
  EXPECT_EQ(measure_tips(tips, options).cells.size(), 1U);
  options.tips = {"fused-attention", "other"};  // one of them applies
  EXPECT_EQ(measure_tips(tips, options).cells.at(0).note, "applies to bert, gpt");
  options.tips = {"fused-attention"};
  try {
    (void)measure_tips(tips, options);
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("no selected tip applies to cnn: fused-attention applies to bert, gpt"));
  }
}

TEST(TipsTable, TheMachineIsThere) {
  FakeTime time;
  const std::vector<Tip> tips{fake("a", {"cnn"})};
  const TipsTable table = measure_tips(tips, time.options(1));
  EXPECT_FALSE(table.cpu.empty());
  EXPECT_GE(table.load_before, 0);
  EXPECT_GE(table.load_after, 0);
  EXPECT_GT(table.memory_bytes, 0);
  EXPECT_EQ(table.intra_op, table.cores_used);
  ASSERT_EQ(table.date.size(), std::string("2026-11-22T06:55:41Z").size()) << table.date;
  EXPECT_EQ(table.date[10], 'T');
  EXPECT_EQ(table.date.back(), 'Z');
}

}  // namespace
}  // namespace stoker::study
