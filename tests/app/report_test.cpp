// SPDX-License-Identifier: Apache-2.0
// Reports of unusual runs: one that fails at its first step, one without validation, one that is still being written.
#include <algorithm>
#include <cstring>

#include "app/people_table.h"
#include "app/trained_run.h"

namespace stoker::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::string page_of(const fs::path& run) { return read_bytes(run / "report.html"); }

TEST(ReportOfRun, ThatFailsAtItsFirstStep) {
  const TrainedRun& base = trained_run();
  const TempFolder folder;
  std::string weights = weights_of(base.run());
  std::uint64_t header = 0;
  std::memcpy(&header, weights.data(), sizeof header);
  std::fill(weights.begin() + static_cast<std::ptrdiff_t>(sizeof header + header), weights.end(), '\xFF');  // NaN
  folder.write("nan.safetensors", weights);
  const Finished done = run_stoker(
      Words{"train", base.data(), "weights=nan.safetensors", "skip_limit=0", "run=crashed"} + kQuick, folder.path());
  EXPECT_EQ(done.code, 1) << done.all();
  const fs::path run = folder / "runs/crashed";
  for (const bool again : {false, true}) {  // written by the run itself, then by the command
    if (again) {
      fs::remove(run / "report.html");
      ASSERT_EQ(run_stoker({"report", run}, folder.path()).code, kDone);
    }
    EXPECT_THAT(page_of(run), AllOf(HasSubstr("Failed at step 1 of 3"), HasSubstr("the last step was not finite")))
        << again;
  }
}

TEST(ReportOfRun, WithoutValidation) {
  const TempFolder folder;
  folder.write("people.csv", people());
  const Finished done =
      run_stoker(Words{"train", "people.csv", "target=pay", "val=0", "run=plain"} + kShort, folder.path());
  ASSERT_EQ(done.code, kDone) << done.all();
  const fs::path run = folder / "runs/plain";
  EXPECT_FALSE(fs::exists(run / "checkpoints/best"));
  EXPECT_THAT(read_bytes(run / "metrics.csv"), AllOf(Not(HasSubstr(",val,")), HasSubstr(",test,auc,")));
  EXPECT_THAT(page_of(run), AllOf(HasSubstr("no validation"), HasSubstr("Finished")));
  const auto results = run_all({{"eval", "runs/plain"}, {"eval", "runs/plain", "--split", "val"}}, folder.path());
  EXPECT_THAT(results[0].out, HasSubstr("test split, 48 samples"));
  EXPECT_EQ(results[1].code, kDataError);
  EXPECT_THAT(results[1].err, HasSubstr("no val split; it has train 192, val 0, test 48"));
}

TEST(MemoryOfRun, IsShownAndPrintedAsJson) {
  const TrainedRun& base = trained_run();
  const TempFolder folder;
  const auto results =
      run_all({{"memory", base.run()}, {"memory", base.run(), "--json"}, {"memory", folder.path()}}, folder.path());
  EXPECT_EQ(results[0].code, kDone) << results[0].all();
  EXPECT_THAT(results[0].out, AllOf(HasSubstr("Memory of step 3 on cpu"), HasSubstr("held at the peak"),
                                    HasSubstr("parameters"), HasSubstr("activations"), HasSubstr("^forward"),
                                    HasSubstr("largest tensors"), HasSubstr("highest memory of the process")));
  EXPECT_EQ(results[1].code, kDone);
  const nlohmann::json record = nlohmann::json::parse(results[1].out);
  std::int64_t sum = 0;
  for (const auto& each : record.at("categories")) {
    sum += each.at("bytes").get<std::int64_t>();
  }
  EXPECT_EQ(sum, record.at("peak").get<std::int64_t>());
  EXPECT_EQ(results[2].code, kDataError);
  EXPECT_THAT(page_of(base.run()), HasSubstr("\"kind\":\"memory\""));
}

// The report knows the built-in kinds of tasks by name: it offers no commands for the kinds that programs add.
TEST(ReportOfRun, OffersCommandsForEveryBuiltInKind) {
  const TempFolder folder;
  int kinds = 0;
  for (const std::string& line : lines_of(run_stoker({"info", "tasks"}, folder.path()).out)) {
    if (const std::string kind = line.substr(0, line.find(' ')); !kind.empty()) {
      ++kinds;
      folder.write(kind + "/plan.json", R"({"plan":{"task":{"value":")" + kind + R"("}}})");
      folder.write(kind + "/checkpoints/last/info.json", R"({"step":1,"task":")" + kind + R"("})");
      ASSERT_EQ(run_stoker({"report", kind}, folder.path()).code, kDone) << kind;
      EXPECT_THAT(page_of(folder / kind), HasSubstr("stoker eval " + kind));
    }
  }
  EXPECT_GE(kinds, 3);
}

TEST(ReportOfRun, ThatIsBeingWritten) {
  const TempFolder folder;
  StokerProcess training(
      Words{"train", trained_run().data(), "run=going", "--json", "steps=1000000", "save_every=50"} + kQuick,
      folder.path());
  const fs::path run = folder / "runs/going";
  for (const int saved : {1, 5, 9}) {  // perhaps at half a line, or while a checkpoint is replaced
    ASSERT_TRUE(training.wait_for("\"kind\":\"last\"", saved)) << training.err();
    const Finished done = run_stoker({"report", run}, folder.path());
    EXPECT_EQ(done.code, kDone) << done.all();
    EXPECT_THAT(page_of(run), HasSubstr("Still running: step "));
  }
  training.signal(SIGINT);
  EXPECT_EQ(training.finish().code, kStopped);
  EXPECT_THAT(page_of(run), HasSubstr("Stopped on request at step "));
}

}  // namespace
}  // namespace stoker::testing
