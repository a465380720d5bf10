// SPDX-License-Identifier: Apache-2.0
// Which run a command goes on with when its starter gives it again.
#include "stoker/job/continued_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stoker/base/error.h"
#include "stoker/base/file.h"
#include "support/temp_folder.h"

namespace stoker::job {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ContinuedRunTest : public ::testing::Test {
 protected:
  ContinuedRunTest() : before_(fs::current_path()) { fs::current_path(folder_.path()); }
  ~ContinuedRunTest() override { fs::current_path(before_); }

  static Request request(const std::vector<std::string>& words, bool repeated = false,
                         const std::string& id = "job 7") {
    Request made = make_request("", words);
    made.start = {.repeats = true, .repeated = repeated, .id = id};
    return made;
  }
  // A run that ended before its first checkpoint.
  static fs::path begin(const Request& request, const std::string& name) {
    const RunFolder run = RunFolder::create(name, "runs", true);
    record_start(run, request);
    write_file_atomically(run.config(), request_to_toml(request));
    write_file_atomically(run.plan(), "{}");
    return run.path();
  }

  testing::TempFolder folder_;

 private:
  fs::path before_;
};

TEST_F(ContinuedRunTest, TheNamedOne) {
  const Request words = request({"data=d", "run=x", "batch=64", "epochs=5"});
  EXPECT_FALSE(run_to_continue(words));
  const fs::path path = begin(words, "x");
  EXPECT_EQ(run_to_continue(words)->run, path);
  EXPECT_TRUE(run_to_continue(words)->changes.empty());
  Request by_hand = words;
  by_hand.start = {};
  EXPECT_FALSE(run_to_continue(by_hand)) << "a person who trains again under the same name gets another run";
}

TEST_F(ContinuedRunTest, WithoutANameTheOneOfTheSameStart) {
  const std::vector<std::string> words{"data=d", "batch=64"};
  begin(request(words, false, "job 6"), "a");
  const fs::path second = begin(request(words), "b");
  begin(request(words, false, ""), "c");
  EXPECT_EQ(run_to_continue(request(words, /*repeated=*/true))->run, second);
  EXPECT_FALSE(run_to_continue(request(words))) << "a first start begins a run";
  EXPECT_FALSE(run_to_continue(request(words, true, "job 8")));
  EXPECT_FALSE(run_to_continue(request(words, true, "")));
}

TEST_F(ContinuedRunTest, TakesWhatAResumeMayChange) {
  begin(request({"data=d", "run=x", "batch=64", "epochs=5", "ranks=2"}), "x");
  const Request longer = request({"data=d", "run=x", "batch=64", "epochs=9", "ranks=3", "save_every=10"});
  EXPECT_THAT(run_to_continue(longer)->changes, ElementsAre("epochs=9", "save_every=10"));
}

TEST_F(ContinuedRunTest, RefusesTheRunOfAnotherCommand) {
  begin(request({"data=d", "run=x", "batch=64"}), "x");
  const auto refusal = [](const std::vector<std::string>& words) -> std::string {
    try {
      (void)run_to_continue(request(words));
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_THAT(refusal({"data=d", "run=x", "batch=32"}), HasSubstr("with batch=64; now with batch=32"));
  EXPECT_THAT(refusal({"data=d", "run=x"}), HasSubstr("with batch=64"));
  EXPECT_THAT(refusal({"data=d", "run=x", "batch=auto"}), HasSubstr("batch=auto"));
  EXPECT_THAT(refusal({"data=e", "run=x", "batch=64"}), HasSubstr("data="));
  EXPECT_THAT(refusal({"data=d", "run=x", "plan=p"}), HasSubstr("plan="));
}

// A process may end while it makes the folder.
TEST_F(ContinuedRunTest, AnUnfinishedFolderIsTaken) {
  fs::create_directories("runs/x/artifacts");
  write_file_atomically("runs/x/config.toml", "");
  EXPECT_EQ(RunFolder::create("x", "runs", true).path(), "runs/x");
  EXPECT_EQ(RunFolder::create("x", "runs").path(), "runs/x-2");
  write_file_atomically("runs/x/notes.txt", "mine");
  EXPECT_EQ(RunFolder::create("x", "runs", true).path(), "runs/x-3");
}

}  // namespace
}  // namespace stoker::job
