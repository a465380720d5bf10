// SPDX-License-Identifier: Apache-2.0
// From what was asked to what runs: precedence, contradictions, and choices by (faked) trials with their ties.
#include "stoker/train/resolve.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "stoker/base/error.h"

namespace stoker::train {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

Facts facts_of(std::int64_t samples, int cores = 2) {
  Facts facts;
  facts.train_samples = samples;
  facts.cores = cores;
  facts.task = "image_classification";
  for (const auto& [key, value] : std::map<std::string, std::string>{{"model", "cnn"},
                                                                     {"image_size", "32"},
                                                                     {"augment", "none"},
                                                                     {"epochs", "10"},
                                                                     {"batch", "64"},
                                                                     {"optimizer", "sgd"},
                                                                     {"lr", "0.1"},
                                                                     {"lr_batch", "128"},
                                                                     {"weight_decay", "0.001"},
                                                                     {"schedule", "cosine"},
                                                                     {"warmup", "0.1"},
                                                                     {"label_smoothing", "0"}}) {
    facts.recipe.push_back({key, value, core::Origin::kDefault, "by the recipe"});
  }
  return facts;
}

Options asked(std::initializer_list<const char*> words) {
  Options options;
  for (const char* word : words) {
    options.set_assignment(word);
  }
  return options;
}

std::string refusal(const Options& options, const Facts& facts) {
  try {
    (void)resolve(options, facts);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST(Resolve, TheCommandLineBeatsTheRecipeBeatsTheDefaults) {
  const Plan plan = resolve(asked({"lr=0.3"}), facts_of(1000));
  EXPECT_EQ(plan.lr, 0.3);
  EXPECT_EQ(plan.notes.at("lr").origin, core::Origin::kCommandLine);
  EXPECT_EQ(plan.batch, 64);
  EXPECT_EQ(plan.model, "cnn");
  EXPECT_EQ(plan.microbatch, 64);
  EXPECT_EQ(plan.own.size(), 3U);  // image_size, augment, label_smoothing: no settings of the engine
  EXPECT_EQ(plan.rows().size(), settings().size() + 3);
  EXPECT_DOUBLE_EQ(plan.peak_lr(), 0.15);  // linear: 64 of 128
}

TEST(Resolve, EveryValueHasAReasonOrAnOrigin) {
  const Plan plan = resolve({}, facts_of(1000));
  for (const Setting& each : settings()) {
    EXPECT_TRUE(plan.notes.contains(each.key)) << each.key << " was never decided";
  }
}

TEST(Resolve, RefusesContradictions) {
  EXPECT_THAT(refusal(asked({"batch=2000"}), facts_of(1000)),
              HasSubstr("batch 2000 is larger than the 1000 training samples"));
  EXPECT_THAT(refusal(asked({"microbatch=65"}), facts_of(1000)), HasSubstr("microbatch 65 is larger than batch 64"));
  EXPECT_THAT(refusal(asked({"freeze=2"}), facts_of(1000)), HasSubstr("give weights=FILE"));
  EXPECT_THAT(refusal(asked({"nvtx=on"}), facts_of(1000)), HasSubstr("leave it out"));
  EXPECT_THAT(refusal(asked({"half_weights=on", "precision=fp32"}), facts_of(1000)), HasSubstr("precision=bf16"));
  EXPECT_THAT(refusal(asked({"batch=1"}), facts_of(1000)), HasSubstr("batch norm"));
  EXPECT_THAT(refusal(asked({"tail=keep"}), facts_of(65)), HasSubstr("set tail=drop"));
  EXPECT_THAT(refusal(asked({"microbatch=2", "batch=3"}), facts_of(1000)), HasSubstr("batch=3 microbatch=2"));  // 1 + 2
  EXPECT_THAT(refusal(asked({"tail=drop", "batch=1"}), facts_of(1000)), HasSubstr("batch norm"));
  EXPECT_THAT(refusal(asked({"early_stop=3"}), facts_of(1000)), HasSubstr("validation split"));
  EXPECT_THAT(refusal({}, facts_of(0)), HasSubstr("no training sample"));
}

// For whoever looks at what a GPU's fp16 does to a run: the numbers are the same, the time is not.
TEST(Resolve, Fp16OnACpuIsDoneWithAWarning) {
  const Plan plan = resolve(asked({"precision=fp16"}), facts_of(1000));
  EXPECT_EQ(plan.precision, "fp16");
  EXPECT_THAT(plan.notes.at("precision").reason, HasSubstr("slower than fp32"));
  EXPECT_THAT(resolve(asked({"precision=bf16"}), facts_of(1000)).notes.at("precision").reason,
              Not(HasSubstr("slower")));
}

TEST(Resolve, ALonelyTailIsDroppedAndSaidSo) {
  const Plan plan = resolve({}, facts_of(129));
  EXPECT_EQ(plan.tail, "drop");
  EXPECT_EQ(plan.notes.at("tail").origin, core::Origin::kAdvice);
  EXPECT_EQ(steps_per_epoch(plan, 129), 2);
  Facts without_norm = facts_of(129);
  without_norm.couples_samples = false;
  EXPECT_EQ(steps_per_epoch(resolve({}, without_norm), 129), 3);
}

TEST(Resolve, ATailThatMicrobatchesCutToOneIsDropped) {
  const Plan plan = resolve(asked({"batch=64", "microbatch=2"}), facts_of(69));  // a tail of 5: passes of 1, 2, 2
  EXPECT_EQ(plan.tail, "drop");
  EXPECT_EQ(smallest_pass(plan, 69), 2);
}

TEST(Resolve, ASmallDatasetIsOneBatch) {
  const Plan plan = resolve({}, facts_of(10));
  EXPECT_EQ(plan.batch, 10);
  EXPECT_EQ(total_steps(plan, 10), plan.epochs);
  EXPECT_EQ(total_steps(resolve(asked({"steps=7"}), facts_of(10)), 10), 7);
}

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
      result.push_back(seconds_.at(each.precision) * share / (steps_scale ? each.intra_op : 1));
    }
    return result;
  }
  core::LoadTime load_time_per_sample() override { return {load_, asleep}; }
  std::vector<std::string> tried;
  bool steps_scale = true;
  double asleep = 0;  // of loading

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
  // Loading costs as much as training: in turns, where both have use for both cores; else a core each.
  EXPECT_EQ(measured(1, 2, 1).threads, 0);
  FakeTrials one_core_is_enough(1, 2, 1);
  one_core_is_enough.steps_scale = false;
  const Plan dear = measured_by(one_core_is_enough);
  EXPECT_EQ(dear.threads, 1);
  EXPECT_EQ(dear.intra_op, 1);
  const Plan many = measured(1, 2, 1, {}, 8);
  EXPECT_LE(many.threads + many.intra_op, 8);
  EXPECT_EQ(measured(1, 2, 1, {"threads=0"}).threads, 0);
}

// 10.5 s of computing are shared by both cores between steps; a disk is waited for beside the step, by more threads
// than there are cores.
TEST(Measure, ADiskIsWaitedForBesideTheStep) {
  FakeTrials computes(4, 8, 10.5);
  EXPECT_EQ(measured_by(computes).threads, 0);
  FakeTrials sleeps(4, 8, 10.5);
  sleeps.asleep = 10;
  const Plan plan = measured_by(sleeps);
  EXPECT_EQ(plan.threads, 1);
  EXPECT_EQ(plan.intra_op, 1);
  EXPECT_THAT(plan.notes.at("threads").reason,
              HasSubstr("1.05e+04 ms, 95 % of them waiting for the disk; with training, on intra_op + threads: "
                        "7.25e+03 ms on 2 + 0, 4e+03 ms on 1 + 1"));
  // 16 threads more than cores, and no more, wait for it at a time: fewer than 64 that load between steps.
  FakeTrials far(64, 128, 101);
  far.asleep = 100;
  EXPECT_EQ(measured_by(far, {}, 64).threads, 0);
}

TEST(Measure, WhatThreadsCostIsAskedOfThemTogether) {
  FakeTrials trials(1, 2, 1);
  const Plan plan = measured_by(trials, {"precision=fp32"});
  EXPECT_THAT(trials.tried, ElementsAre("fp32 channels_last 2", "fp32 channels_last 1"));
  EXPECT_THAT(plan.notes.at("threads").reason, HasSubstr("1e+03 ms on 2 + 0, 1e+03 ms on 1 + 1"));
  FakeTrials fixed(1, 2, 1);
  EXPECT_EQ(measured_by(fixed, {"precision=fp32", "intra_op=1"}).threads, 1);
  EXPECT_THAT(fixed.tried, ElementsAre("fp32 channels_last 1"));  // all compute alike: noise has nothing to choose by
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
