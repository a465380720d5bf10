// SPDX-License-Identifier: Apache-2.0
// `stoker tune` as a user runs it: a table with the reason for each choice, JSON, clear errors, and nothing written.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "app/people_table.h"
#include "app/stoker_process.h"
#include "support/image_set.h"
#include "support/temp_folder.h"

namespace stoker::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class TuneTest : public ::testing::Test {
 protected:
  TuneTest() { write_striped_set(folder_, "data/", 30); }

  TempFolder folder_;
};

const Words kFixed = {"tune", "data", "model=cnn", "device=cpu", "intra_op=1", "threads=0", "precision=fp32"};

TEST_F(TuneTest, ShowsATableAndTheReasonForEachChoice) {
  const Finished tuned = run_stoker(kFixed + Words{"batch=32"}, folder_.path());
  ASSERT_EQ(tuned.code, 0) << tuned.all();
  EXPECT_THAT(tuned.out, AllOf(HasSubstr("samples per pass"), HasSubstr("samples/s"), HasSubstr("####"),
                               HasSubstr("largest that fits  32 samples"), HasSubstr("choice             microbatch="),
                               HasSubstr("nothing was trained or written")));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "runs"));
}

// As words of a shell, with all that the search was told.
TEST_F(TuneTest, TheCommandToUseIsWhole) {
  std::filesystem::create_directory_symlink(folder_ / "data", folder_ / "the user's");
  Words words = kFixed + Words{"batch=32", "lr=0.1"};
  words[1] = "the user's";
  const Finished tuned = run_stoker(words, folder_.path());
  ASSERT_EQ(tuned.code, 0) << tuned.all();
  const std::string same = R"('the user'\''s' device=cpu intra_op=1 lr=0.1 model=cnn precision=fp32 threads=0 batch=)";
  EXPECT_THAT(tuned.out,
              AllOf(HasSubstr("stoker train " + same + "32 microbatch="), HasSubstr("stoker tune " + same + "auto\n")));
}

TEST_F(TuneTest, JsonHoldsTheSame) {
  const Finished tuned = run_stoker(kFixed + Words{"batch=auto", "--json"}, folder_.path());
  ASSERT_EQ(tuned.code, 0) << tuned.all();
  const auto json = nlohmann::json::parse(tuned.out);
  EXPECT_EQ(json.at("batch"), json.at("microbatch"));
  EXPECT_LE(json.at("probes").size(), 8U);
  EXPECT_EQ(json.at("chosen").at("samples"), json.at("batch"));
  EXPECT_GT(json.at("probes").at(0).at("bytes").get<std::int64_t>(), 0);
  EXPECT_THAT(tuned.err, IsEmpty());
}

TEST_F(TuneTest, ErrorsSayWhatToDo) {
  const std::vector<std::pair<Words, std::pair<int, std::string>>> cases = {
      {{"memory_limit=3M"}, {2, "memory_limit=3.00 MiB is too small: the weights of cnn take"}},
      {{"batch=1"}, {2, "set both to 2 or more"}},
      {{"microbatch=4"}, {2, "remove microbatch=4"}},
      {{"recompute=auto"}, {2, "remove recompute=auto, or set recompute=all"}},
      {{"optimizer_in_backward=on"}, {2, "remove optimizer_in_backward=on"}},
      {{"plan=x.json"}, {2, "remove plan="}}};
  for (const auto& [words, expected] : cases) {
    const Finished tuned = run_stoker(kFixed + words, folder_.path());
    EXPECT_EQ(tuned.code, expected.first) << tuned.all();
    EXPECT_THAT(tuned.err, HasSubstr(expected.second));
  }
}

TEST_F(TuneTest, TrainWithAutoSaysWhatItChose) {
  Words words = kFixed + Words{"batch=16", "microbatch=auto"};
  words.front() = "plan";
  const Finished plan = run_stoker(words, folder_.path());
  ASSERT_EQ(plan.code, 0) << plan.all();
  EXPECT_THAT(plan.out, HasSubstr("auto: "));
  EXPECT_THAT(plan.out, HasSubstr("the largest that fits is 16"));
}

}  // namespace
}  // namespace stoker::testing
