// SPDX-License-Identifier: Apache-2.0
// `stoker train` and `stoker plan` as a person or a script sees them: the run folder, plain lines in a pipe, --quiet,
// --json, plans that repeat, and the same weights from a folder, a tar file and tar shards.
#include <map>
#include <set>

#include "app/trained_run.h"
#include "support/tar_builder.h"

namespace stoker::testing {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

TEST(Train, LeavesARunFolderAndWritesPlainLinesToAPipe) {
  const TrainedRun& base = trained_run();
  for (const char* file : {"config.toml", "plan.json", "metrics.csv", "metrics.jsonl",
                           "checkpoints/best/weights.safetensors", "checkpoints/last/state.safetensors"}) {
    EXPECT_TRUE(fs::is_regular_file(base.run() / file)) << file;
  }
  const std::string& out = base.trained().out;
  EXPECT_THAT(out, Not(HasSubstr("\r")));
  EXPECT_THAT(out, Not(HasSubstr("\x1b")));
  EXPECT_THAT(out,
              AllOf(HasSubstr("split folders, 3 classes; train 24, val 9, test 9"), HasSubstr("epoch 1: val accuracy"),
                    HasSubstr("on the test split: accuracy"), HasSubstr("run folder: runs/base\n")));
  EXPECT_THAT(base.trained().err, IsEmpty());
}

TEST(Train, QuietAndJsonAreForMachines) {
  const TempFolder folder;
  const Words words = Words{"train", trained_run().data()} + kQuick;
  const auto results =
      run_all({words + Words{"run=same", "--quiet"}, words + Words{"run=json", "--json"}}, folder.path());
  const Finished &quiet = results[0], &json = results[1];
  EXPECT_EQ(quiet.code, kDone) << quiet.err;
  EXPECT_THAT(lines_of(quiet.out), AllOf(Each(Not(HasSubstr("step"))), Contains(HasSubstr("on the test split")),
                                         Contains("run folder: runs/same")));
  EXPECT_EQ(json.code, kDone) << json.err;
  EXPECT_THAT(json.err, IsEmpty());
  Words kinds;
  for (const std::string& line : lines_of(json.out)) {
    const auto event = nlohmann::json::parse(line, nullptr, false);
    ASSERT_TRUE(event.is_object()) << line;
    kinds.push_back(event.at("event"));
  }
  ASSERT_FALSE(kinds.empty());
  EXPECT_EQ(kinds.front(), "run_started");
  EXPECT_EQ(kinds.back(), "run_finished");
  EXPECT_EQ(std::count(kinds.begin(), kinds.end(), "step"), 3);
  EXPECT_THAT(kinds, AllOf(Contains("evaluated"), Contains("checkpoint")));

  // The same command again: another folder, the same bytes.
  const Finished again = run_stoker(words + Words{"run=same", "--quiet"}, folder.path());
  EXPECT_EQ(again.code, kDone) << again.err;
  EXPECT_THAT(again.out, HasSubstr("run folder: runs/same-2"));
  EXPECT_EQ(weights_of(folder / "runs/same-2"), weights_of(folder / "runs/same"));
  EXPECT_FALSE(weights_of(folder / "runs/same").empty());
}

TEST(Train, APlanIsPrintedOnceAndRepeats) {
  const TempFolder folder;
  const std::string data = trained_run().data();
  folder.write("config.toml", "epochs = 1\nbatch = 6\nlr = 0.5\n");
  const Words words = Words{"plan", data, "--config", "config.toml"} + kQuick;
  const auto results = run_all({words, words + Words{"--json"}}, folder.path());
  for (const Finished& each : results) {
    ASSERT_EQ(each.code, kDone) << each.err;
  }
  EXPECT_FALSE(fs::exists(folder / "runs"));
  const auto plan = nlohmann::json::parse(results[1].out).at("plan");
  const std::set<std::string> origins = {"default", "config", "command line", "measured", "advice"};
  const Words lines = lines_of(results[0].out);
  for (const auto& [key, row] : plan.items()) {
    EXPECT_EQ(std::count_if(lines.begin(), lines.end(),
                            [&](const std::string& line) {
                              return line.substr(std::min<std::size_t>(2, line.size())).starts_with(key + " ");
                            }),
              1)
        << key;
    EXPECT_TRUE(origins.contains(row.at("origin"))) << key;
  }
  EXPECT_EQ(plan.at("lr").at("value"), "0.5");
  EXPECT_EQ(plan.at("lr").at("origin"), "config");
  EXPECT_EQ(plan.at("batch").at("value"), "8");  // the command line overrides the file
  EXPECT_EQ(plan.at("batch").at("origin"), "command line");

  folder.write("plan.json", results[1].out);
  const Finished repeated = run_stoker({"train", data, "plan=plan.json", "run=repeated"}, folder.path());
  EXPECT_EQ(repeated.code, kDone) << repeated.err;
  const auto used = nlohmann::json::parse(read_bytes(folder / "runs/repeated/plan.json")).at("plan");
  for (const auto& [key, row] : plan.items()) {
    EXPECT_EQ(used.at(key).at("value"), row.at("value")) << key;
  }
}

TEST(Train, AFolderATarFileAndShardsGiveTheSameWeights) {
  const TrainedRun& base = trained_run();
  const TempFolder folder;
  TarBuilder all;
  std::map<std::string, TarBuilder> shards;
  for (const char* split : {"train", "val", "test"}) {
    std::vector<fs::path> files;
    for (const auto& entry : fs::recursive_directory_iterator(base.data() / split)) {
      if (entry.is_regular_file()) {
        files.push_back(entry.path());
      }
    }
    for (std::size_t i = 0; i < files.size(); ++i) {  // in directory order, not sorted
      const std::string bytes = read_bytes(files[i]);
      all.add(files[i].lexically_relative(base.data()).native(), bytes);
      shards[std::string(split) + "-" + std::to_string(i % 2) + ".tar"].add(
          files[i].lexically_relative(base.data() / split).native(), bytes);
    }
  }
  folder.write("all.tar", all.done());
  for (const auto& [name, builder] : shards) {
    folder.write("shards/" + name, builder.done());
  }
  const auto results = run_all(
      {Words{"train", "all.tar", "run=tar"} + kQuick, Words{"train", "shards", "run=shards"} + kQuick}, folder.path());
  EXPECT_EQ(results[0].code, kDone) << results[0].err;
  EXPECT_EQ(results[1].code, kDone) << results[1].err;
  EXPECT_THAT(results[1].out, HasSubstr("tar shards, 3 classes; train 24, val 9, test 9"));
  EXPECT_EQ(weights_of(folder / "runs/tar"), weights_of(base.run()));
  EXPECT_EQ(weights_of(folder / "runs/shards"), weights_of(base.run()));
}

TEST(Train, ALastBatchOfOneIsLeftOutUnderBatchNorm) {
  const TempFolder folder;
  write_striped_set(folder, "data/train/", 3);  // 9 samples in batches of 4
  write_striped_set(folder, "data/val/", 1, 50);
  const Words words = kQuick + Words{"model=cnn", "batch=4", "run=" + (folder / "run").native()};
  const auto results =
      run_all({Words{"train", "data"} + words, Words{"train", "data", "tail=keep"} + words}, folder.path());
  EXPECT_EQ(results[0].code, kDone) << results[0].err;
  const auto plan = nlohmann::json::parse(read_bytes(folder / "run/plan.json")).at("plan");
  EXPECT_EQ(plan.at("tail").at("value"), "drop");
  EXPECT_EQ(plan.at("tail").at("origin"), "advice");
  EXPECT_EQ(results[1].code, kUsage);
  EXPECT_THAT(results[1].err, AllOf(HasSubstr("forward pass of 1 sample"), HasSubstr("set tail=drop")));
}

TEST(Train, AFullDiskUnderStandardOutputIsAnError) {
  const TempFolder folder;
  const Finished done = run_stoker({"info", "models"}, folder.path(),
                                   [] { return std::freopen("/dev/full", "w", stdout) == nullptr ? 94 : 0; });
  EXPECT_EQ(done.code, kIoError);
  EXPECT_THAT(done.err, HasSubstr("standard output cannot be written"));
}

}  // namespace
}  // namespace stoker::testing
