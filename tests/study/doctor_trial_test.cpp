// SPDX-License-Identifier: Apache-2.0
// What the doctor tries, what it keeps, and what it remembers of its predictions. The speeds are made up here; real
// scripts are tried in tests/house/script_trial_test.py, a real run in tests/app/doctor_test.cpp.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "stoker/base/error.h"
#include "stoker/study/doctor/apply_cures.h"
#include "stoker/study/doctor/score.h"
#include "stoker/study/doctor/trier.h"
#include "support/temp_folder.h"

namespace stoker::study {
namespace {

using observe::doctor::Found;
using observe::doctor::Source;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::TempFolder;

std::string names(const std::vector<Cure>& changes) {
  std::string text;
  for (const Cure& each : changes) {
    text += each.option + ";";
  }
  return text;
}

Cure named(const char* option) { return {.rule = "input_wait", .option = option, .where = ""}; }

const auto kSilent = [](const std::string&) {};

TEST(NextCommand, IsForAShell) {
  const auto command = [](const char* run, const char* option) {
    Trials trials;
    trials.tried.push_back({.cure = named(option), .gain = {}, .kept = true, .trouble = ""});
    trials.tried.push_back({.cure = named("ema=0"), .gain = {}, .kept = false, .trouble = ""});
    return next_command({.run = run, .say = kSilent}, trials);
  };
  EXPECT_EQ(command("runs/a-1", "save_every=50"), "stoker resume runs/a-1 save_every=50\n");
  EXPECT_EQ(command("runs/it's a b", "save_every=50"), "stoker resume 'runs/it'\\''s a b' save_every=50\n");
  EXPECT_EQ(command("runs/$(a)", "batch=64"), "stoker train --config 'runs/$(a)/config.toml' batch=64\n");
}

TEST(NextCommand, NamesEachOptionOnce) {
  Trials trials;
  for (const char* option : {"threads=auto intra_op=auto", "save_every=50", "threads=3"}) {
    trials.tried.push_back({.cure = named(option), .gain = {}, .kept = true, .trouble = ""});
  }
  EXPECT_EQ(next_command({.run = "a", .say = kSilent}, trials),
            "stoker resume a save_every=50 threads=3\nor, from the beginning, with all of them:\n"
            "stoker train --config a/config.toml save_every=50 threads=3 intra_op=auto\n");
  EXPECT_THAT(kept_changes(trials), ElementsAre("save_every=50", "threads=3"));
}

TEST(Trier, KeepsWhatGainsBesideWhatItKept) {
  const std::map<std::string, double> speeds = {
      {"", 10}, {"a;", 10.8}, {"a;b;", 10.7}, {"a;c;", 10.9}, {"a;d;", 22}};  // d gains much, and needs three pairs
  std::vector<std::string> asked;
  Trier trier(
      5,
      [&](const std::vector<Cure>& changes) {
        asked.push_back(names(changes));
        return speeds.at(asked.back());
      },
      kSilent);
  const Tried a = trier.try_one(named("a"));
  EXPECT_TRUE(a.kept);
  EXPECT_DOUBLE_EQ(a.gain.median, 1.08);
  EXPECT_THAT(asked, ElementsAre("", "a;", "a;", "", "", "a;", "a;", "", "", "a;"));  // who begins takes turns
  EXPECT_FALSE(trier.try_one(named("b")).kept);
  EXPECT_FALSE(trier.try_one(named("c")).kept) << "1 % is not worth a change";
  asked.clear();
  EXPECT_TRUE(trier.try_one(named("d")).kept);
  EXPECT_EQ(asked.size(), 6U);
}

TEST(Trier, OneSlowPairIsADoubt) {
  int run = 0;
  Trier trier(
      5, [&](const std::vector<Cure>& changes) { return changes.empty() ? 10
                                                        : ++run == 2    ? 9.9
                                                                        : 10.5; }, kSilent);
  EXPECT_FALSE(trier.try_one(named("a")).kept);
}

TEST(Trier, WhatCannotBeMeasuredIsToldAndNotKept) {
  Trier trier(
      3,
      [](const std::vector<Cure>& changes) -> double {
        if (names(changes) == "bad;") {
          fail<DataError>("test", "no such argument");
        }
        return 1;
      },
      kSilent);
  const Tried tried = trier.try_one(named("bad"));
  EXPECT_THAT(tried.trouble, HasSubstr("no such argument"));
  EXPECT_FALSE(tried.kept);
  EXPECT_TRUE(trier.try_one(named("good")).trouble.empty());
}

Examined script_with(const char* rule, const char* option, double gain) {
  Examined examined;
  examined.facts.source = Source::kScript;
  examined.facts.words = {{"loader.where", "data.py:28"}, {"switch.main", "train.py:0"}};
  const auto found = std::ranges::find(observe::doctor::rules(), rule, &observe::doctor::Rule::id);
  Found each;
  each.rule = &*found;
  each.finding.option = option;
  each.finding.gain = {gain, gain - 0.01, gain + 0.01};
  examined.diagnosis.found = {each};
  return examined;
}

TEST(Cures, AreFindingsThatCanBeTried) {
  const auto workers = cures(script_with("input_wait", "num_workers=2, torch.set_num_threads(1)", 1.5));
  ASSERT_EQ(workers.size(), 1U);
  EXPECT_EQ(workers[0].where, "data.py:28");
  EXPECT_DOUBLE_EQ(workers[0].prediction->speedup, 1.5);
  EXPECT_TRUE(workers[0].changes_results);
  const auto frozen = cures(script_with("gc_churn", "gc.freeze()", 1.5));
  EXPECT_EQ(frozen[0].where, "train.py:0");
  EXPECT_FALSE(frozen[0].changes_results);
  EXPECT_THAT(cures(script_with("eval_with_grad", "torch.inference_mode()", 1.5)), IsEmpty()) << "no way from outside";
  EXPECT_THAT(cures(script_with("gc_churn", "gc.freeze()", 1.001)), IsEmpty()) << "not worth a word";
  EXPECT_TRUE(cures(script_with("oversubscribed_threads", "torch.set_num_threads(1)", 1.5))[0].changes_results);
}

// What likely gains is measured, but only what surely gains is advice.
TEST(Cures, TryMoreThanIsProposed) {
  Examined examined = script_with("zero_grad_not_none", "set_to_none=True", 1.1);
  examined.diagnosis.found[0].finding.gain.low = 1;
  EXPECT_THAT(proposed(examined), IsEmpty());
  EXPECT_EQ(cures(examined).size(), 1U);
}

TEST(Cures, SwitchesThatOnlyAMeasurementCanJudgeComeLast) {
  Examined examined = script_with("gc_churn", "gc.freeze()", 1.5);
  examined.facts.figures["switch.optimizer.filters"] = {2, "script"};
  examined.facts.figures["switch.optimizer.filters_channels_last"] = {0, "script"};
  auto found = cures(examined);
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[1].option, "memory_format=torch.channels_last");
  EXPECT_TRUE(found[1].changes_results);
  EXPECT_FALSE(found[1].prediction);
  examined.facts.figures["switch.optimizer.filters_channels_last"] = {2, "script"};
  EXPECT_EQ(cures(examined).size(), 1U);
  examined.facts.words["switch.cuda"] = "NVIDIA H200";
  examined.facts.words["switch.cudnn_benchmark"] = "false";
  examined.facts.words["switch.matmul_precision"] = "highest";
  found = cures(examined);
  ASSERT_EQ(found.size(), 3U);
  EXPECT_EQ(names({found[1], found[2]}),
            "torch.set_float32_matmul_precision('high');torch.backends.cudnn.benchmark=True;");
  // Only a trace tells what copies cost.
  examined.facts.figures["loader.workers"] = {2, "script"};
  examined.facts.figures["loader.persistent"] = {1, "script"};
  examined.facts.figures["loader.pin"] = {0, "script"};
  EXPECT_EQ(cures(examined).size(), 3U);
  const auto copies = std::ranges::find(observe::doctor::rules(), "serial_h2d", &observe::doctor::Rule::id);
  examined.diagnosis.undecided = {{&*copies, "a recorded trace"}};
  found = cures(examined);
  ASSERT_EQ(found.size(), 4U);
  EXPECT_EQ(found[3].option, "pin_memory=True");
}

TEST(Cures, ThreadsOfOperatorsChangeSumsAlsoIfADefaultChoseThem) {
  Examined examined = script_with("oversubscribed_threads", "threads=auto intra_op=auto", 1.5);
  examined.facts.source = Source::kRun;
  EXPECT_TRUE(cures(examined)[0].changes_results);
}

TEST(Cures, OfARunAreItsOptions) {
  Examined examined = script_with("checkpoint_stall", "save_every=200", 1.5);  // no way in a script
  EXPECT_THAT(cures(examined), IsEmpty());
  examined.facts.source = Source::kRun;
  examined.facts.words = {{"plan.batch", "64"}, {"plan.microbatch", "4"}, {"origin.plan.microbatch", "config"}};
  const auto found = cures(examined);
  EXPECT_EQ(names(found), "save_every=200;microbatch=64;");
  EXPECT_FALSE(found[1].prediction);
  EXPECT_TRUE(found[1].changes_results);
}

// A finding that sets an option leaves no other trial of it.
TEST(Cures, TryAnOptionOnce) {
  Examined examined = script_with("oversubscribed_threads", "threads=auto intra_op=auto", 1.5);
  examined.facts.source = Source::kRun;
  examined.facts.words = {{"plan.intra_op", "8"}, {"origin.plan.intra_op", "config"}};
  const auto found = cures(examined);
  EXPECT_EQ(names(found), "threads=auto intra_op=auto;");
  EXPECT_TRUE(found[0].changes_results);
}

TEST(TrialsText, SaysWhatToChange) {
  Tried kept{.cure = {.rule = "input_wait",
                      .option = "num_workers=2",
                      .where = "data.py:28",
                      .prediction = observe::doctor::Prediction{1.5, 1.3, 1.7},
                      .changes_results = false},
             .gain = {1.6, 1.55, 1.7, 5},
             .kept = true,
             .trouble = {}};
  Tried not_kept{.cure = named("b"), .gain = {1.0, 0.97, 1.02, 5}, .kept = false, .trouble = {}};
  not_kept.cure.where = "train.py:0";
  const std::string text = trials_text({kept, not_kept});
  EXPECT_THAT(text, AllOf(HasSubstr("1.60 times as fast with these changes:\n  num_workers=2 at data.py:28\n"),
                          HasSubstr("predicted 1.50x (1.30 to 1.70), measured 1.60x (1.55 to 1.70, 5 pairs): kept"),
                          HasSubstr("measured 1.00x (0.97 to 1.02, 5 pairs): not kept")));
  EXPECT_THAT(text, ::testing::Not(HasSubstr("train.py:0")));
  EXPECT_THAT(trials_text({not_kept}), HasSubstr("None of these"));
  const auto json = nlohmann::json::parse(trials_json({.examined = {}, .tried = {kept, not_kept}}));
  EXPECT_EQ(json["tried"][0]["measured"]["pairs"], 5);
  EXPECT_TRUE(json["tried"][1]["predicted"].is_null());
}

TEST(Score, CountsWhatWasPredictedAndMeasured) {
  const TempFolder folder;
  ::setenv("XDG_STATE_HOME", folder.path().c_str(), 1);
  EXPECT_EQ(score_text(), "");
  const auto tried = [](double likely, double measured) {
    Tried each{.cure = named("a"), .gain = {measured, measured, measured, 5}, .kept = true, .trouble = {}};
    each.cure.prediction = observe::doctor::Prediction{likely, 0.9 * likely, 1.1 * likely};
    return each;
  };
  Tried failed = tried(3, 0);
  failed.trouble = "it did not start";
  Tried silent = tried(2, 2);
  silent.cure.prediction = std::nullopt;
  const std::vector<Tried> all = {tried(1.2, 1.2), tried(2, 1), tried(1.1, 1), failed, silent};
  keep_score(all);
  std::ofstream(folder.path() / "stoker/predictions.jsonl", std::ios::app) << "{half a line\n{\"likely\":\"x\"}\n";
  EXPECT_EQ(score_text(),
            "Score of all predictions here so far: 3 predictions; the measured gain was inside the interval in 2; "
            "error: median 10.0 %\n");
  ::unsetenv("XDG_STATE_HOME");
}

}  // namespace
}  // namespace stoker::study
