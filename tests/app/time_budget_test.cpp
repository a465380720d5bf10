// SPDX-License-Identifier: Apache-2.0
// time= from a user's view: `stoker plan` shows the epochs that it allows and why, a run finishes its schedule, a
// resume keeps the plan, and epochs= takes precedence.
#include "app/trained_run.h"

namespace stoker::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// kQuick without its epochs, so that time= decides. A day is enough for eight times the recipe's epochs.
const Words kAnyLength = {"model=mlp", "batch=8", "precision=fp32", "threads=0", "intra_op=1"};

nlohmann::json planned(const fs::path& run, const char* key) {
  return nlohmann::json::parse(read_bytes(run / "plan.json")).at("plan").at(key);
}

TEST(TimeBudgetOfTheCommandLine, ThePlanShowsItAndEpochsComeFirst) {
  const std::string data = trained_run().data().native();
  const TempFolder folder;
  const auto results =
      run_all({Words{"plan", data, "time=24h"} + kAnyLength, Words{"plan", data, "time=24h", "epochs=3"} + kAnyLength},
              folder.path());
  EXPECT_EQ(results[0].code, kDone) << results[0].all();
  EXPECT_THAT(results[0].out, AllOf(HasSubstr("measured"), HasSubstr("8 times the recipe's")));
  EXPECT_EQ(results[1].code, kDone) << results[1].all();
  EXPECT_THAT(results[1].out, Not(HasSubstr("times the recipe's")));
}

TEST(TimeBudgetOfTheCommandLine, ARunEndsItsScheduleAndAResumeKeepsThePlan) {
  const std::string data = trained_run().data().native();
  const TempFolder folder;
  const Finished trained = run_stoker(
      Words{"train", data, "run=timed", "time=24h", "early_stop=1", "save_every=100", "eval_every=3"} + kAnyLength,
      folder.path());
  ASSERT_EQ(trained.code, kDone) << trained.all();
  const fs::path run = folder / "runs/timed";
  const nlohmann::json epochs = planned(run, "epochs");
  EXPECT_EQ(epochs.at("origin"), "measured");
  const Finished resumed = run_stoker({"resume", "runs/timed", "early_stop=0", "steps=30"}, folder.path());
  EXPECT_EQ(resumed.code, kDone) << resumed.all();
  EXPECT_EQ(planned(run, "epochs"), epochs);
}

}  // namespace
}  // namespace stoker::testing
