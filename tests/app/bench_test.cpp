// SPDX-License-Identifier: Apache-2.0
// `stoker bench` from a user's view: refusals before anything is measured, measurements that survive a later failure,
// and the slow parts with tiny data.
#include <sys/resource.h>

#include <csignal>
#include <nlohmann/json.hpp>

#include "app/trained_run.h"

namespace stoker::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

const Words kTips = {"bench", "tips", "--models", "mlp", "--tips", "grads-to-none", "--quick", "--intra-op", "1"};

TEST(Bench, WordsThatNobodyUnderstandsAreRefusedAtOnce) {
  const TempFolder folder;
  const std::vector<std::pair<Words, Words>> refusals = {
      {{"bench", "tip"}, {"\"tip\"", "did you mean \"tips\"", "stoker bench --help"}},
      {{"bench", "tips", "--secnds", "60"}, {"--secnds"}},
      {{"bench", "tips", "typo"}, {"typo"}},
      {{"bench", "--quick", "tips"}, {"--quick"}},
      {{"bench", "tips", "--images", "10"}, {"--images", "--accuracy"}},
      {{"bench", "tips", "--cpu-time", "--intra-op", "2"}, {"one thread"}},
      {{"bench", "tips", "--tips", "fused-attention", "--models", "cnn"},
       {"no selected tip applies to cnn", "bert, gpt"}}};
  std::vector<Words> commands;
  for (const auto& [words, says] : refusals) {
    commands.push_back(words);
  }
  const std::vector<Finished> results = run_all(commands, folder.path());
  for (std::size_t i = 0; i < refusals.size(); ++i) {
    SCOPED_TRACE(::testing::PrintToString(refusals[i].first));
    EXPECT_EQ(results[i].code, kUsage) << results[i].all();
    EXPECT_THAT(results[i].out, IsEmpty());
    EXPECT_LE(lines_of(results[i].err).size(), 2U) << results[i].err;
    for (const std::string& text : refusals[i].second) {
      EXPECT_THAT(results[i].err, HasSubstr(text));
    }
  }
}

TEST(Bench, TargetsAndImagesAreLookedAtBeforeAnythingIsMeasured) {
  const TempFolder folder;
  write_striped_set(folder, "untested/", 2);
  const auto results = run_all({kTips + Words{"--json", "nowhere/tips.json"}, kTips + Words{"--html", "untested"},
                                kTips + Words{"--accuracy", "untested"}, kTips + Words{"--accuracy", "nowhere"}},
                               folder.path());
  EXPECT_EQ(results[0].code, kIoError);
  EXPECT_THAT(results[0].err, AllOf(HasSubstr("nowhere/tips.json"), HasSubstr("create it first")));
  EXPECT_EQ(results[1].code, kIoError);
  EXPECT_THAT(results[1].err, HasSubstr("untested is a folder"));
  EXPECT_EQ(results[2].code, kUsage);
  EXPECT_THAT(results[2].err, HasSubstr("needs a test split"));
  EXPECT_EQ(results[3].code, kDataError);
  for (const Finished& each : results) {
    EXPECT_THAT(each.err, Not(HasSubstr("1 of 1"))) << "it had begun to measure";
    EXPECT_THAT(each.out, IsEmpty());
  }
}

TEST(Bench, WhatWasMeasuredOutlivesADiskThatIsFull) {
  const TempFolder folder;
  const Finished done = run_stoker(kTips + Words{"--json", "tips.json", "--html", "tips.html"}, folder.path(), [] {
    const rlimit limit{10'000, 10'000};  // bytes per file; the page is larger
    return std::signal(SIGXFSZ, SIG_IGN) == SIG_ERR || ::setrlimit(RLIMIT_FSIZE, &limit) != 0 ? 94 : 0;
  });
  EXPECT_EQ(done.code, kIoError) << done.all();
  EXPECT_THAT(done.err, AllOf(HasSubstr("tips.html"), HasSubstr("File too large")));
  EXPECT_THAT(done.out, HasSubstr("gradients set to none, not zeroed"));
  EXPECT_EQ(nlohmann::json::parse(read_bytes(folder / "tips.json"))["tips"].size(), 1U);
  EXPECT_FALSE(fs::exists(folder / "tips.html"));
}

TEST(Bench, WhatWasMeasuredOutlivesATrainingThatFails) {
  const TempFolder folder;
  for (int number = 0; number < 16; ++number) {
    for (const char* kind : {"train/a/", "train/b/", "test/a/", "test/b/"}) {
      folder.write(kind + std::to_string(number) + ".png", "no image");
    }
  }
  const Finished done = run_stoker(kTips + Words{"--accuracy", ".", "--json", "tips.json"}, folder.path());
  EXPECT_EQ(done.code, kDataError) << done.all();
  EXPECT_THAT(done.out, HasSubstr("gradients set to none, not zeroed"));
  EXPECT_EQ(nlohmann::json::parse(read_bytes(folder / "tips.json"))["tips"][0]["cells"].size(), 1U);
}

TEST(Bench, CpuTimeAndAccuracyReachTheFilesAndTheTerminal) {
  const TempFolder folder;
  write_striped_set(folder, "data/train/", 11);
  write_striped_set(folder, "data/test/", 2, 100);
  const Words words = {"bench",   "tips",       "--models",   "mlp",      "--tips",   "grads-to-none,loader-1-thread",
                       "--quick", "--cpu-time", "--accuracy", "data",     "--images", "32",
                       "--json",  "tips.json",  "--html",     "tips.html"};
  const Finished done = run_stoker(words, folder.path());
  EXPECT_EQ(done.code, kDone) << done.all();
  EXPECT_THAT(done.out, AllOf(HasSubstr("CPU time of one thread"), HasSubstr("intra-op threads: 1"),
                              HasSubstr("needs wall time"), HasSubstr("accuracy by schedule")));
  EXPECT_THAT(done.err, HasSubstr("18 trainings, 3 epochs each, 32 images"));
  const auto json = nlohmann::json::parse(read_bytes(folder / "tips.json"));
  EXPECT_EQ(json["clock"], "thread CPU");
  EXPECT_EQ(json["device"], "cpu");  // for "auto" too: StokerProcess hides the GPUs
  EXPECT_EQ(json["tips"][0]["cells"][0]["pairs"], 6);
  EXPECT_EQ(json["tips"][1]["note"], "needs wall time");
  ASSERT_EQ(json["accuracies"].size(), 6U);
  for (const auto& each : json["accuracies"]) {
    EXPECT_EQ(each["accuracy"].size(), 3U) << each;
  }
  EXPECT_THAT(read_bytes(folder / "tips.html"), HasSubstr("resnet34-slim-no-norm"));
}

}  // namespace
}  // namespace stoker::testing
