// SPDX-License-Identifier: Apache-2.0
// `stoker doctor` as a user runs it, on runs that were trained for it.
#include <algorithm>

#include "app/trained_run.h"

namespace stoker::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using Json = nlohmann::json;

class DoctorTest : public ::testing::Test {
 protected:
  DoctorTest() { write_striped_set(folder_, "data/", 40); }
  TempFolder folder_;
};

// A checkpoint with each step takes far longer than the step of a tiny network, on any machine.
TEST_F(DoctorTest, NamesTheCauseAndTheOptionThatCuresIt) {
  const Finished trained =
      run_stoker(Words{"train", "data", "run=runs/a", "save_every=1"} + kQuick + Words{"epochs=12"}, folder_.path());
  ASSERT_EQ(trained.code, kDone) << trained.all();
  const Finished text = run_stoker({"doctor", "runs/a"}, folder_.path());
  ASSERT_EQ(text.code, kDone) << text.all();
  EXPECT_THAT(text.out, AllOf(StartsWith("Checkpoints stop the training"), HasSubstr("save_every="),
                              HasSubstr("1. checkpoint_stall"), HasSubstr("wrong if:")));
  const Finished json = run_stoker({"doctor", "runs/a", "--json"}, folder_.path());
  ASSERT_EQ(json.code, kDone) << json.all();
  const Json told = Json::parse(json.out);
  EXPECT_EQ(told.at("kind"), "diagnosis");
  const Json& first = told.at("findings").at(0);
  EXPECT_EQ(first.at("rule"), "checkpoint_stall");
  EXPECT_TRUE(first.at("critical").get<bool>());
  const Json& speedup = first.at("speedup");
  EXPECT_LE(speedup.at("low"), speedup.at("likely"));
  EXPECT_LE(speedup.at("likely"), speedup.at("high"));
}

TEST_F(DoctorTest, AppliesWhatItProposes) {
  const Finished trained =
      run_stoker(Words{"train", "data", "run=runs/a", "save_every=1"} + kQuick + Words{"epochs=12"}, folder_.path());
  ASSERT_EQ(trained.code, kDone) << trained.all();
  const std::string before = read_text(folder_ / "runs/a/metrics.jsonl");
  ::setenv("XDG_STATE_HOME", (folder_ / "state").c_str(), 1);  // for the score
  const Finished applied = run_stoker({"doctor", "runs/a", "--apply", "--pairs", "3", "--json"}, folder_.path());
  ::unsetenv("XDG_STATE_HOME");
  ASSERT_EQ(applied.code, kDone) << applied.all();
  EXPECT_THAT(applied.err, HasSubstr("short trainings of")) << "it says beforehand how long it takes";
  const Json told = Json::parse(applied.out);
  const Json& first = told.at("tried").at(0);
  EXPECT_THAT(first.at("option").get<std::string>(), StartsWith("save_every="));
  EXPECT_TRUE(first.at("kept").get<bool>()) << applied.all();
  EXPECT_GT(first.at("measured").at("low").get<double>(), 1.02);
  const auto chosen =
      std::ranges::find_if(told.at("tried"), [](const Json& each) { return each.at("option") == "intra_op=auto"; });
  ASSERT_NE(chosen, told.at("tried").end()) << "somebody set it, and no rule can tell: " << applied.all();
  EXPECT_TRUE(chosen->at("rule").is_null());
  EXPECT_GT(chosen->at("measured").at("median").get<double>(), 0);
  EXPECT_EQ(read_text(folder_ / "runs/a/metrics.jsonl"), before) << "the run is not touched";
}

TEST_F(DoctorTest, OfWhatIsNoRunIsAClearError) {
  const Finished missing = run_stoker({"doctor", "runs/missing"}, folder_.path());
  EXPECT_EQ(missing.code, kDataError);
  EXPECT_THAT(missing.err, AllOf(HasSubstr("runs/missing"), HasSubstr("does not exist")));
  const Finished nothing = run_stoker({"doctor"}, folder_.path());
  EXPECT_EQ(nothing.code, kUsage);
  EXPECT_THAT(nothing.err, HasSubstr("stoker doctor runs/NAME"));
}

TEST_F(DoctorTest, ExplainsItsRules) {
  const Finished rules = run_stoker({"doctor", "--explain"}, folder_.path());
  ASSERT_EQ(rules.code, kDone) << rules.all();
  for (const char* id : {"input_wait", "checkpoint_stall", "neighbour", "cpu_quota"}) {
    EXPECT_THAT(rules.out, HasSubstr(id));
  }
  EXPECT_THAT(rules.out,
              AllOf(HasSubstr("speaks at:"), HasSubstr("wrong if:"), HasSubstr("54 kernels on parallel streams")));
}

}  // namespace
}  // namespace stoker::testing
