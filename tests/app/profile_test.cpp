// SPDX-License-Identifier: Apache-2.0
// `stoker profile` as a user runs it, on data, on a run that trains and on one that has ended; and profile= in a
// training. What is recorded, what changes, and clear errors.
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "app/trained_run.h"

namespace stoker::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using Json = nlohmann::json;

Json read_json(const fs::path& path) { return Json::parse(read_bytes(path)); }

// Relative paths with times of change and sizes.
std::vector<std::string> content_of(const fs::path& folder) {
  std::vector<std::string> files;
  for (const auto& each : fs::recursive_directory_iterator(folder)) {
    files.push_back(each.path().native() + " " + std::to_string(each.last_write_time().time_since_epoch().count()) +
                    " " + (each.is_regular_file() ? std::to_string(each.file_size()) : ""));
  }
  std::ranges::sort(files);
  return files;
}

// The facts that must fit together in every record.
void check_record(const Json& record, std::int64_t steps) {
  EXPECT_EQ(record.at("kind"), "profile");
  EXPECT_EQ(record.at("format"), 1);
  EXPECT_EQ(record.at("steps"), steps);
  EXPECT_GT(record.at("flops").get<double>(), 0);
  const auto seconds = record.at("seconds").get<double>();
  double exposed = 0, phases = 0;
  for (const Json& row : record.at("operators")) {
    exposed += row.at("exposed_seconds").get<double>();
  }
  for (const Json& row : record.at("phases")) {
    phases += row.at("own_seconds").get<double>();
  }
  EXPECT_NEAR(exposed, record.at("exposed_seconds").get<double>(), 1e-6);
  EXPECT_LE(exposed, seconds);
  EXPECT_NEAR(phases, seconds, 0.01 * seconds);
}

class ProfileTest : public ::testing::Test {
 protected:
  ProfileTest() { write_striped_set(folder_, "data/", 40); }
  TempFolder folder_;
};

TEST_F(ProfileTest, OfDataTrainsStepsThatNobodyKeeps) {
  const Finished shown = run_stoker(Words{"profile", "data", "--steps", "4"} + kQuick, folder_.path());
  ASSERT_EQ(shown.code, kDone) << shown.all();
  EXPECT_THAT(shown.out, AllOf(HasSubstr("steps 7 to 10: "), HasSubstr("ceilings measured here: float product"),
                               HasSubstr("step.forward"), HasSubstr("aten::addmm"), HasSubstr("outside operators"),
                               HasSubstr("allocated per step"), HasSubstr("stoker trace profile.pt.trace.json.gz")));
  EXPECT_THAT(shown.err, Not(HasSubstr(".cpp:")));  // Kineto's lines, such as "ERROR:... DeviceProperties.cpp:48]"
  EXPECT_FALSE(fs::exists(folder_ / "runs"));
  const Finished again = run_stoker(Words{"profile", "data", "--steps", "4", "--json"} + kQuick, folder_.path());
  ASSERT_EQ(again.code, kDone) << again.all();
  check_record(Json::parse(again.out), 4);
  EXPECT_EQ(Json::parse(again.out).at("trace"), "profile-2.pt.trace.json.gz");  // the first one is still there
  EXPECT_TRUE(fs::exists(folder_ / "profile.pt.trace.json.gz"));
}

TEST_F(ProfileTest, OfARunThatHasEndedChangesNothingInIt) {
  ASSERT_EQ(run_stoker(Words{"train", "data", "run=runs/a"} + kQuick, folder_.path()).code, kDone);
  const auto before = content_of(folder_ / "runs/a");
  const Finished shown =
      run_stoker({"profile", "runs/a", "--steps", "3", "--json", "--out", "a.json.gz"}, folder_.path());
  ASSERT_EQ(shown.code, kDone) << shown.all();
  const Json record = Json::parse(shown.out);
  check_record(record, 3);
  EXPECT_GT(record.at("first_step").get<int>(), 5);  // it goes on behind the last step
  EXPECT_EQ(content_of(folder_ / "runs/a"), before);
  EXPECT_TRUE(fs::exists(folder_ / "a.json.gz"));
}

TEST_F(ProfileTest, OfStepsThatTheTrainingIsTold) {
  const Words train = Words{"train", "data", "run=runs/a", "profile=7+3"} + kQuick;
  const Finished trained = run_stoker(train + Words{"epochs=3"}, folder_.path());
  ASSERT_EQ(trained.code, kDone) << trained.all();
  const Json record = read_json(folder_ / "runs/a/profile/step-7.json");
  check_record(record, 3);
  EXPECT_EQ(record.at("first_step"), 7);
  EXPECT_TRUE(fs::exists(folder_ / "runs/a/profile/step-7.pt.trace.json.gz"));
  EXPECT_FALSE(fs::exists(folder_ / "runs/a/run.sock"));
  EXPECT_THAT(trained.all(), HasSubstr("profile/step-7.json"));
  const Finished plain = run_stoker(Words{"train", "data", "run=runs/b"} + kQuick + Words{"epochs=3"}, folder_.path());
  ASSERT_EQ(plain.code, kDone) << plain.all();
  EXPECT_EQ(weights_of(folder_ / "runs/a"), weights_of(folder_ / "runs/b"));  // it changes no bit
}

// The ceilings are measured with what the limit leaves.
TEST_F(ProfileTest, UnderALimitOfMemory) {
  const Words train = Words{"train", "data", "run=runs/a", "profile=10+5", "memory_limit=40M"} + kQuick;
  const Finished trained = run_stoker(train + Words{"epochs=20"}, folder_.path());
  ASSERT_EQ(trained.code, kDone) << trained.all();
  const Json record = read_json(folder_ / "runs/a/profile/step-10.json");
  check_record(record, 5);
  EXPECT_GT(record.at("ceilings").at("flops_per_second").at("float").get<double>(), 0);
  EXPECT_FALSE(record.at("ceilings").contains("bytes_per_second"));
  EXPECT_THAT(trained.all(), Not(HasSubstr("no profile")));
}

// Kineto keeps its records until the end: they grow by 100 KiB a step.
TEST_F(ProfileTest, ItsOwnMemoryIsNoLeak) {
  std::string rows = "number,large\n";
  for (int i = 0; i < 6000; ++i) {
    rows += std::to_string(i % 37) + (i % 37 > 20 ? ",yes\n" : ",no\n");
  }
  folder_.write("rows.csv", rows);
  const Finished trained = run_stoker({"train", "rows.csv", "target=large", "run=runs/a", "profile=10+600", "batch=8",
                                       "epochs=1", "precision=fp32", "threads=0", "intra_op=1", "device=cpu"},
                                      folder_.path());
  ASSERT_EQ(trained.code, kDone) << trained.all();
  EXPECT_TRUE(fs::exists(folder_ / "runs/a/profile/step-10.json"));
  EXPECT_THAT(trained.all(), Not(HasSubstr("grow")));
}

// What a training without a run folder would log is in the record, and on the page.
TEST_F(ProfileTest, RemarksAreKept) {
  for (int i = 0; i < 6; ++i) {  // some are in the training split
    folder_.write(fmt::format("data/plain/broken_{}.png", i), "no image");
  }
  const Finished shown =
      run_stoker(Words{"profile", "data", "bad_budget=0.5", "--steps", "14"} + kQuick, folder_.path());
  ASSERT_EQ(shown.code, kDone) << shown.all();
  EXPECT_THAT(shown.out, AllOf(HasSubstr("note: "), HasSubstr("broken_")));
}

TEST_F(ProfileTest, TheReasonOfAFailureIsTheError) {
  const Finished failed = run_stoker(Words{"profile", "data", "--steps", "3"} + kQuick, folder_.path(), [] {
    const rlimit limit{10'000, 10'000};  // bytes per file; the trace is larger
    return std::signal(SIGXFSZ, SIG_IGN) == SIG_ERR || ::setrlimit(RLIMIT_FSIZE, &limit) != 0 ? 94 : 0;
  });
  EXPECT_EQ(failed.code, kIoError) << failed.all();
  EXPECT_THAT(failed.err, HasSubstr("is the disk full?"));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_.path()), {}), 1);  // data
}

// Steps that come too early for a warm process are recorded as soon as it is.
TEST_F(ProfileTest, TheFirstStepsAreNeverRecorded) {
  const Finished trained =
      run_stoker(Words{"train", "data", "run=runs/a", "profile=1+2"} + kQuick + Words{"epochs=3"}, folder_.path());
  ASSERT_EQ(trained.code, kDone) << trained.all();
  EXPECT_TRUE(fs::exists(folder_ / "runs/a/profile/step-7.json"));
}

// The last steps of a run: those that there are, without the evaluation after them.
TEST_F(ProfileTest, ARunThatEndsFirstLeavesTheStepsItHas) {
  const Finished trained =
      run_stoker(Words{"train", "data", "run=runs/a", "profile=10+1000"} + kQuick + Words{"epochs=3"}, folder_.path());
  ASSERT_EQ(trained.code, kDone) << trained.all();
  const Json record = read_json(folder_ / "runs/a/profile/step-10.json");
  const Words rows = lines_of(read_bytes(folder_ / "runs/a/metrics.csv"));
  const auto steps = std::ranges::count_if(rows, [](const std::string& row) { return row.starts_with("step,"); });
  check_record(record, steps - 9);
  for (const Json& phase : record.at("phases")) {
    EXPECT_TRUE(phase.at("name") != "evaluation" || phase.at("calls") == 2);  // of the first epochs
  }
}

TEST_F(ProfileTest, OfARunThatTrains) {
  StokerProcess run(Words{"train", "data", "run=runs/a"} + kQuick + Words{"epochs=100000"}, folder_.path());
  ASSERT_TRUE(run.wait_for("epoch 1")) << run.out() << run.err();
  const Finished shown = run_stoker({"profile", "runs/a", "--steps", "5", "--json"}, folder_.path());
  ASSERT_EQ(shown.code, kDone) << shown.all();
  const Json record = Json::parse(shown.out);
  check_record(record, 5);
  EXPECT_TRUE(fs::exists(folder_ / record.at("trace").get<std::string>()));
  EXPECT_GT(record.at("usual_step_seconds").get<double>(), 0);
  const auto mode = fs::status(folder_ / "runs/a/run.sock").permissions();
  EXPECT_EQ(mode, fs::perms::owner_read | fs::perms::owner_write);
  EXPECT_EQ(run_stoker({"profile", "runs/a", "--steps", "2"}, folder_.path()).code, kDone);  // it can be asked again
  run.signal(SIGINT);
  EXPECT_EQ(run.finish().code, kStopped);
  EXPECT_FALSE(fs::exists(folder_ / "runs/a/run.sock"));
}

// A killed run leaves its socket; the next process of the run listens in its place.
TEST_F(ProfileTest, ASocketThatAKilledRunLeftIsReplaced) {
  const Words train = Words{"train", "data", "run=runs/a", "save_every=5"} + kQuick + Words{"epochs=100000"};
  StokerProcess killed(train, folder_.path());
  ASSERT_TRUE(killed.wait_for("saved the last checkpoint")) << killed.out() << killed.err();
  killed.signal(SIGKILL);
  killed.finish();
  ASSERT_TRUE(fs::is_socket(folder_ / "runs/a/run.sock"));
  const Finished ended = run_stoker({"profile", "runs/a", "--steps", "2", "--json"}, folder_.path());
  EXPECT_EQ(ended.code, kDone) << ended.all();  // nobody listens: from the checkpoint
  EXPECT_TRUE(fs::exists(folder_ / "profile.pt.trace.json.gz"));
  StokerProcess resumed({"resume", "runs/a"}, folder_.path());
  ASSERT_TRUE(resumed.wait_for("epoch"));
  const Finished live = run_stoker({"profile", "runs/a", "--steps", "2", "--json"}, folder_.path());
  EXPECT_EQ(live.code, kDone) << live.all();
  EXPECT_THAT(Json::parse(live.out).at("trace").get<std::string>(), HasSubstr("runs/a/profile/"));
  resumed.signal(SIGINT);
  EXPECT_EQ(resumed.finish().code, kStopped);
}

TEST_F(ProfileTest, Refusals) {
  const std::vector<std::pair<Words, std::string>> refusals = {
      {{"profile", "missing"}, "missing"},
      {Words{"profile", "data", "--steps", "0"}, "--steps"},
      {Words{"train", "data", "profile=0+3"} + kQuick, "profile"},
      {Words{"train", "data", "profile=5+0"} + kQuick, "profile"},
      {Words{"train", "data", "profile=x"} + kQuick, "STEP+N"},
      {Words{"train", "data", "profile=1000+5"} + kQuick, "the run has"},
      {Words{"profile", "data", "--out", "missing/a.json.gz"} + kQuick, "missing"},
  };
  for (const auto& [words, text] : refusals) {
    const Finished refused = run_stoker(words, folder_.path());
    EXPECT_NE(refused.code, kDone) << ::testing::PrintToString(words);
    EXPECT_THAT(refused.err, HasSubstr(text)) << ::testing::PrintToString(words);
  }
  EXPECT_FALSE(fs::exists(folder_ / "runs"));
}

TEST_F(ProfileTest, ARunHasItsOwnPlan) {
  const Finished refused = run_stoker({"profile", trained_run().run().native(), "batch=3"}, folder_.path());
  EXPECT_EQ(refused.code, kUsage);
  EXPECT_THAT(refused.err, HasSubstr("remove batch=3"));
}

}  // namespace
}  // namespace stoker::testing
