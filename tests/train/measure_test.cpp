// SPDX-License-Identifier: Apache-2.0
// Choices by fake trials, and ties.
#include "stoker/train/measure.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <map>

#include "support/made_up_facts.h"

namespace stoker::train {
namespace {

using testing::asked;
using ::testing::Each;
using ::testing::ElementsAre;
using testing::facts_of;
using ::testing::HasSubstr;

// Trials with given seconds; 2 intra-op threads halve a step, or gain nothing. contiguous: a share of channels_last's
// seconds, by precision; empty: layouts cannot be tried.
class FakeTrials final : public Trials {
 public:
  FakeTrials(double fp32, double bf16, double load, std::map<std::string, double> contiguous = {})
      : seconds_{{"fp32", fp32}, {"bf16", bf16}}, contiguous_(std::move(contiguous)), load_(load) {}
  bool layouts_can_be_tried() override { return !contiguous_.empty(); }
  std::vector<double> step_seconds_per_sample(const std::vector<Candidate>& candidates) override {
    std::vector<double> result;
    for (const Candidate& each : candidates) {
      tried.push_back(each.precision + " " + each.layout + " " + std::to_string(each.intra_op));
      const double share = each.layout == "contiguous" ? contiguous_.at(each.precision) : 1;
      const double scale = !by_threads.empty() ? by_threads.at(each.intra_op) : steps_scale ? 1.0 / each.intra_op : 1;
      result.push_back(seconds_.at(each.precision) * share * scale);
    }
    return result;
  }
  core::LoadTime load_time_per_sample() override { return {load_, asleep}; }
  std::vector<std::string> tried;
  bool steps_scale = true;
  std::map<int, double> by_threads;  // share of one thread's seconds, by threads of an operator; empty: as above
  double asleep = 0;                 // of loading

 private:
  std::map<std::string, double> seconds_, contiguous_;
  double load_;
};

Plan measured_by(FakeTrials& trials, std::initializer_list<const char*> words = {}, int cores = 2) {
  const Options options = asked(words);
  const Facts facts = facts_of(1000, cores);
  Plan plan = resolve(options, facts);
  measure(plan, options, facts, trials);
  return plan;
}

Plan measured(double fp32, double bf16, double load, std::initializer_list<const char*> words = {}, int cores = 2) {
  FakeTrials trials(fp32, bf16, load);
  return measured_by(trials, words, cores);
}

TEST(Measure, PrecisionMustWinClearly) {
  EXPECT_EQ(measured(1, 0.5, 0).precision, "bf16");
  EXPECT_EQ(measured(1, 0.97, 0).precision, "fp32");
  EXPECT_EQ(measured(1, 0.5, 0, {"precision=fp32"}).precision, "fp32");
  EXPECT_EQ(measured(1, 0.5, 0).notes.at("precision").origin, core::Origin::kMeasured);
}

TEST(Measure, ThreadsGoWhereTheyPay) {
  const Plan cheap = measured(1, 2, 0.01);  // loading costs 2 % of a step: both cores compute
  EXPECT_EQ(cheap.threads, 0);
  EXPECT_EQ(cheap.intra_op, 2);
  // Loading costs as much as training: one core for each is as fast as both cores in turns.
  EXPECT_EQ(measured(1, 2, 1).threads, 1);
  FakeTrials one_core_is_enough(1, 2, 1);
  one_core_is_enough.steps_scale = false;
  const Plan dear = measured_by(one_core_is_enough);
  EXPECT_EQ(dear.threads, 1);
  EXPECT_EQ(dear.intra_op, 1);
  const Plan many = measured(1, 2, 1, {}, 8);
  EXPECT_LE(many.threads + many.intra_op, 8);
  EXPECT_EQ(measured(1, 2, 1, {"threads=0"}).threads, 0);
}

// Both cores share 10.5 s of computing between steps. Waiting for a disk happens during the step, in more threads than
// there are cores.
TEST(Measure, ADiskIsWaitedForBesideTheStep) {
  FakeTrials computes(4, 8, 10.5);
  EXPECT_EQ(measured_by(computes).threads, 0);
  FakeTrials sleeps(4, 8, 10.5);
  sleeps.asleep = 10;
  const Plan plan = measured_by(sleeps);
  EXPECT_EQ(plan.threads, 1);
  EXPECT_EQ(plan.intra_op, 1);
  EXPECT_THAT(plan.notes.at("threads").reason,
              HasSubstr("1.05e+04 ms, 95 % of the time waiting for the disk; with training, for intra_op + threads: "
                        "1.45e+04 ms on 1 + 0, 4e+03 ms on 1 + 1, 7.25e+03 ms on 2 + 0"));
  // At most 16 extra threads wait for it at a time. With cores left for the step, these are fewer than 64 that load
  // between steps.
  FakeTrials far(64, 128, 1001);
  far.asleep = 1000;
  EXPECT_EQ(measured_by(far, {}, 64).threads, 0);
}

TEST(Measure, MoreThreadsMustGainClearly) {
  const auto chosen = [](std::map<int, double> seconds, int cores) {
    FakeTrials trials(1, 2, 0);
    trials.by_threads = std::move(seconds);
    return measured_by(trials, {}, cores).intra_op;
  };
  EXPECT_EQ(chosen({{1, 1}, {2, 0.87}}, 2), 1);
  EXPECT_EQ(chosen({{1, 1}, {2, 0.83}}, 2), 2);
  EXPECT_EQ(chosen({{1, 1}, {2, 0.87}, {3, 0.8}, {4, 0.72}}, 4), 3);  // the best is within 15 % of it
  EXPECT_EQ(chosen({{1, 1}, {2, 0.9}, {8, 0.2}, {15, 0.3}, {16, 2}}, 16), 8);
}

// Another program takes a core for a time slice, which is longer than the whole step.
TEST(Measure, AShortStepHasOneThread) {
  EXPECT_EQ(measured(1e-5, 1, 0).intra_op, 1);  // 0.64 ms
  EXPECT_EQ(measured(1e-4, 1, 0).intra_op, 2);  // 6.4 ms
  EXPECT_EQ(measured(1e-5, 1, 0, {"threads=0"}).intra_op, 1);
  EXPECT_EQ(measured(1e-5, 1, 0, {"intra_op=2"}).intra_op, 2);
  EXPECT_EQ(measured(1e-5, 1, 1e-3, {"threads=0"}).intra_op, 2);  // its threads load, which takes 64 ms
}

// Trials that return the given seconds, one look after the other.
class ChangingTrials final : public Trials {
 public:
  explicit ChangingTrials(std::deque<std::vector<double>> looks) : looks_(std::move(looks)) {}
  bool layouts_can_be_tried() override { return layouts; }
  std::vector<double> step_seconds_per_sample(const std::vector<Candidate>&) override {
    const std::vector<double> look = looks_.at(0);
    looks_.pop_front();
    return look;
  }
  core::LoadTime load_time_per_sample() override { return {}; }
  [[nodiscard]] std::size_t left() const { return looks_.size(); }

  bool layouts = false;

 private:
  std::deque<std::vector<double>> looks_;
};

TEST(Measure, SeveralThreadsMustWinTwoLooksOfThree) {
  const std::vector<double> quiet{1, 0.5}, busy{1, 5};
  const auto chosen = [](std::deque<std::vector<double>> looks) {
    ChangingTrials trials(std::move(looks));
    const Options options = asked({"precision=fp32"});
    const Facts facts = facts_of(1000);
    Plan plan = resolve(options, facts);
    measure(plan, options, facts, trials);
    EXPECT_EQ(trials.left(), 0U);
    return plan.intra_op;
  };
  EXPECT_EQ(chosen({quiet, quiet}), 2);
  EXPECT_EQ(chosen({busy}), 1);
  EXPECT_EQ(chosen({quiet, busy, busy}), 1);
  EXPECT_EQ(chosen({quiet, busy, quiet}), 2);
}

TEST(Measure, HalfPrecisionMustWinTwoLooksOfThree) {
  const std::vector<double> faster{1, 0.5}, slower{1, 1.5};
  const auto chosen = [](std::deque<std::vector<double>> looks) {
    ChangingTrials trials(std::move(looks));
    const Options options = asked({"threads=0", "intra_op=1"});
    const Facts facts = facts_of(1000);
    Plan plan = resolve(options, facts);
    measure(plan, options, facts, trials);
    EXPECT_EQ(trials.left(), 0U);
    return plan.precision;
  };
  EXPECT_EQ(chosen({slower}), "fp32");
  EXPECT_EQ(chosen({faster, faster}), "bf16");
  EXPECT_EQ(chosen({faster, slower, slower}), "fp32");
  EXPECT_EQ(chosen({faster, slower, faster}), "bf16");
}

// Each look has fp32 and bf16 in channels_last, then both in contiguous.
TEST(Measure, PrecisionAndLayoutAreChosenByMediansWhereLooksDisagree) {
  ChangingTrials trials({{1, 0.5, 1, 0.9}, {1, 0.9, 1, 0.5}, {1.2, 0.8, 0.4, 0.7}});
  trials.layouts = true;
  const Options options = asked({"threads=0", "intra_op=1"});
  const Facts facts = facts_of(1000);
  Plan plan = resolve(options, facts);
  measure(plan, options, facts, trials);
  EXPECT_EQ(trials.left(), 0U);
  EXPECT_EQ(plan.precision, "bf16") << "it won two looks, in different layouts; the medians are 1, 0.8, 1, 0.7";
  EXPECT_EQ(plan.layout, "contiguous");
  EXPECT_THAT(plan.notes.at("precision").reason, HasSubstr("1e+03 ms in fp32, 700 ms in bf16"));
}

TEST(Measure, WhatThreadsCostIsAskedOfThemTogether) {
  FakeTrials trials(1, 2, 1);
  const Plan plan = measured_by(trials, {"precision=fp32"});
  EXPECT_THAT(trials.tried, ElementsAre("fp32 channels_last 1", "fp32 channels_last 2"));
  EXPECT_THAT(plan.notes.at("threads").reason, HasSubstr("2e+03 ms on 1 + 0, 1e+03 ms on 1 + 1, 1e+03 ms on 2 + 0"));
  FakeTrials fixed(1, 2, 1);
  EXPECT_EQ(measured_by(fixed, {"precision=fp32", "intra_op=1"}).threads, 1);
  EXPECT_THAT(fixed.tried, ElementsAre("fp32 channels_last 1"));  // all compute alike, so noise must not decide
}

TEST(Measure, OnAGpuLoaderThreadsLeaveCoresUnlessItWaitsForThem) {
  const auto chosen = [](double step, double load, int cores) {
    FakeTrials trials(step, step, load);
    const Plan plan = measured_by(trials, {"device=cuda:0"}, cores);
    EXPECT_EQ(plan.intra_op, 1);
    return plan.threads;
  };
  EXPECT_EQ(chosen(2e-3, 1e-2, 16), 13);  // 0.8 ms on 13 cores
  EXPECT_EQ(chosen(2e-3, 1e-1, 16), 15);  // 7.7 ms on 13, 6.7 ms on 15
  EXPECT_EQ(chosen(2e-3, 1e-3, 2), 1);
  EXPECT_EQ(chosen(2e-3, 1e-2, 4), 3);
  EXPECT_EQ(chosen(2e-3, 0, 16), 0);
}

TEST(Measure, OnAGpuIntraOpThreadsThatWereSetStay) {
  FakeTrials trials(2e-3, 2e-3, 1e-2);
  const Plan plan = measured_by(trials, {"device=cuda:0", "intra_op=4"}, 16);
  EXPECT_EQ(plan.intra_op, 4);
  EXPECT_EQ(plan.notes.at("intra_op").origin, core::Origin::kCommandLine);
  EXPECT_EQ(plan.threads, 13);
}

TEST(Measure, LayoutMustWinClearlyToo) {
  const auto with = [](double fp32, double bf16, std::initializer_list<const char*> words = {}) {
    FakeTrials trials(1, 0.9, 0, {{"fp32", fp32}, {"bf16", bf16}});
    return measured_by(trials, words);
  };
  EXPECT_EQ(with(1.2, 1.2).layout, "channels_last");
  EXPECT_EQ(with(0.97, 0.97).layout, "channels_last");
  EXPECT_EQ(with(0.97, 0.97).notes.at("layout").origin, core::Origin::kMeasured);
  const Plan half = with(1, 0.8);
  EXPECT_EQ(half.precision + " " + half.layout, "bf16 contiguous");
  EXPECT_THAT(half.notes.at("layout").reason, HasSubstr("450 ms in channels_last, 360 ms in contiguous, both in bf16"));
  const Plan full = with(0.7, 1);  // the best pair, not the best layout of the best precision in channels_last
  EXPECT_EQ(full.precision + " " + full.layout, "fp32 contiguous");
  EXPECT_EQ(with(0.7, 1, {"precision=bf16"}).layout, "channels_last");
}

TEST(Measure, AnAskedLayoutStays) {
  for (const std::string layout : {"channels_last", "contiguous"}) {
    FakeTrials trials(1, 0.5, 0,
                      {{"fp32", layout == "contiguous" ? 2 : 0.5}, {"bf16", layout == "contiguous" ? 2 : 0.5}});
    const Plan plan = measured_by(trials, {layout == "contiguous" ? "layout=contiguous" : "layout=channels_last"});
    EXPECT_EQ(plan.layout, layout);
    EXPECT_EQ(plan.notes.at("layout").origin, core::Origin::kCommandLine);
    EXPECT_THAT(trials.tried, Each(HasSubstr(layout)));
    EXPECT_EQ(plan.precision, "bf16");
  }
}

TEST(Measure, LayoutsAreTriedOnlyWhereThatTells) {
  FakeTrials no_convolutions(1, 2, 0);
  const Plan plan = measured_by(no_convolutions);
  EXPECT_EQ(plan.layout, "channels_last");
  EXPECT_EQ(plan.notes.at("layout").origin, core::Origin::kDefault);
  FakeTrials gpu(1, 0.9, 0, {{"fp32", 0.1}, {"bf16", 0.1}});
  EXPECT_EQ(measured_by(gpu, {"device=cuda:0"}).layout, "channels_last");
}

}  // namespace
}  // namespace stoker::train
