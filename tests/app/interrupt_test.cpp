// SPDX-License-Identifier: Apache-2.0
// Runs that are stopped, killed or run out of disk space, and are then resumed: they end with the weights of an
// uninterrupted run. The step at which a run is stopped depends on the machine and must not matter.
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>

#include <sstream>

#include "app/people_table.h"
#include "app/trained_run.h"
#include "app/without_root.h"

namespace stoker::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// Long enough to be interrupted anywhere. The learning rate is constant, so that the length does not change the steps.
const Words kEndless = Words{"steps=1000000", "schedule=constant", "warmup=0", "save_every=5"} + kQuick;

// The digits and dots after the first occurrence of `before` in text; empty if there is none.
std::string number_after(const std::string& text, const std::string& before) {
  const std::size_t found = text.find(before);
  if (found == std::string::npos) {
    return "";
  }
  const std::size_t begin = found + before.size();
  return text.substr(begin, text.find_first_not_of("0123456789.", begin) - begin);
}

int step_of(const fs::path& run) {
  const std::string step = number_after(run_stoker({"info", run}, run).out, "checkpoints/last\n  mlp at step ");
  return step.empty() ? -1 : std::stoi(step);
}

// The rows of metrics.csv, without the times and the memory, which differ from run to run.
std::vector<Words> metrics_of(const fs::path& run) {
  std::vector<Words> rows;
  for (const std::string& line : lines_of(read_bytes(run / "metrics.csv"))) {
    Words& row = rows.emplace_back();
    std::istringstream cells(line);
    int column = 0;
    for (std::string cell; std::getline(cells, cell, ','); ++column) {
      if (column != 4 && column != 5 && column != 7) {  // seconds, data_wait, memory_bytes
        row.push_back(cell);
      }
    }
  }
  return rows;
}

// Resumes a stopped run for 7 more steps, and compares it with an uninterrupted run.
void expect_resumes(const fs::path& run, const TempFolder& folder) {
  const int step = step_of(run);
  ASSERT_GT(step, 0);
  const std::string steps = "steps=" + std::to_string(step + 7);
  const Finished resumed = run_stoker({"resume", run, steps, "--quiet"}, folder.path());
  EXPECT_EQ(resumed.code, kDone) << resumed.all();
  const Finished uninterrupted = run_stoker(
      Words{"train", trained_run().data(), "run=through", "--quiet"} + kEndless + Words{steps, "save_every=0"},
      folder.path());
  EXPECT_EQ(uninterrupted.code, kDone) << uninterrupted.all();
  EXPECT_EQ(step_of(run), step + 7);
  EXPECT_EQ(weights_of(run), weights_of(folder / "runs/through")) << "stopped after step " << step;
  EXPECT_EQ(metrics_of(run), metrics_of(folder / "runs/through")) << "stopped after step " << step;
}

// A checkpoint every few steps takes longer than these steps. The doctor finds that, tries rarer ones, and goes on so.
TEST(Interrupt, WhatTheDoctorChangesLeavesTheBytes) {
  const TempFolder folder;
  StokerProcess training(Words{"train", trained_run().data(), "run=examined", "--json", "apply=doctor"} + kEndless,
                         folder.path());
  ASSERT_TRUE(training.wait_for("\"event\":\"run_started\"", 2)) << training.err();
  training.signal(SIGINT);
  const Finished stopped = training.finish();
  EXPECT_EQ(stopped.code, kStopped) << stopped.err;
  const auto plan = nlohmann::json::parse(read_text(folder / "runs/examined/plan.json")).at("plan");
  EXPECT_GT(std::stoi(plan.at("save_every").at("value").get<std::string>()), 5);
  expect_resumes(folder / "runs/examined", folder);
}

TEST(Interrupt, CtrlCEndsTheDoctorsTrials) {
  const TempFolder folder;
  StokerProcess training(Words{"train", trained_run().data(), "run=examined", "apply=doctor"} + kEndless,
                         folder.path());
  ASSERT_TRUE(training.wait_for("trying save_every=", 1)) << training.err();
  training.signal(SIGINT);
  const Finished stopped = training.finish();
  EXPECT_EQ(stopped.code, kStopped) << stopped.err;
  EXPECT_THAT(stopped.out, HasSubstr("continue with: stoker resume runs/examined"));
  expect_resumes(folder / "runs/examined", folder);
}

TEST(Interrupt, CtrlCSavesAndResumeEndsWithTheSameBytes) {
  const TempFolder folder;
  StokerProcess training(Words{"train", trained_run().data(), "run=stopped", "--json"} + kEndless, folder.path());
  ASSERT_TRUE(training.wait_for("\"event\":\"step\"", 4)) << training.err();
  training.signal(SIGINT);
  const Finished stopped = training.finish();
  EXPECT_EQ(stopped.code, kStopped) << stopped.err;
  EXPECT_THAT(stopped.err, HasSubstr("stopping and saving; press again to stop at once"));
  expect_resumes(folder / "runs/stopped", folder);
}

TEST(Interrupt, TwiceEndsAtOnce) {
  const TempFolder folder;
  StokerProcess training(Words{"train", trained_run().data(), "run=stopped", "--json"} + kEndless, folder.path());
  ASSERT_TRUE(training.wait_for("\"kind\":\"last\"")) << training.err();
  training.signal(SIGSTOP);  // so that both arrive together: a stopped process would merge two SIGINT into one
  training.signal(SIGINT);
  training.signal(SIGTERM);
  training.signal(SIGCONT);
  EXPECT_EQ(training.finish().code, 130);
  EXPECT_GT(step_of(folder / "runs/stopped"), 0);
}

TEST(Interrupt, BeforeTheFirstStepItSaysSoAndLeavesNothing) {
  const TempFolder folder;
  const std::string pipe = folder / "config.toml";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  StokerProcess training({"train", trained_run().data(), "--config", "config.toml"}, folder.path());
  const int held = ::open(pipe.c_str(), O_WRONLY | O_CLOEXEC);  // returns once the child has opened it and waits
  training.signal(SIGINT);
  const Finished stopped = training.finish();
  ::close(held);
  EXPECT_EQ(stopped.code, 130) << stopped.all();
  EXPECT_THAT(stopped.err, HasSubstr("stopped before the first step"));
  EXPECT_FALSE(fs::exists(folder / "runs"));
}

// A table whose validation takes seconds.
std::string long_table() {
  std::string text = "a,b,y\n";
  for (int i = 0; i < 120'000; ++i) {
    text += std::to_string(i * 7 % 101) + "," + std::to_string(i * 5 % 89) + (i * 7 % 101 > 50 ? ",u\n" : ",v\n");
  }
  return text;
}

TEST(Interrupt, DuringValidationItIsDoneOnResume) {
  const TempFolder folder;
  folder.write("long.csv", long_table());
  const Words words = {"train",      "long.csv",  "target=y",   "run=x",        "val=0.9",  "batch=4096",
                       "hidden=256", "threads=0", "epochs=1",   "intra_op=1",   "layers=3", "precision=fp32",
                       "ema=0",      "--json",    "device=cpu", "microbatch=2", "dropout=0"};
  StokerProcess training(words, folder.path());
  ASSERT_TRUE(training.wait_for("\"event\":\"evaluating\"")) << training.err();
  training.signal(SIGTERM);  // the signal that `timeout` sends
  const Finished stopped = training.finish();
  EXPECT_EQ(stopped.code, kStopped) << stopped.all();
  EXPECT_THAT(stopped.err, HasSubstr("stopping and saving; press again to stop at once"));
  const nlohmann::json end = nlohmann::json::parse(lines_of(stopped.out).back());
  EXPECT_EQ(end["outcome"], "stopped") << end;
  EXPECT_EQ(end["text"], "the validation after step " + end["step"].dump() + " is not done; a resume starts with it");

  // A resume starts with this validation, which can be interrupted again.
  StokerProcess resumed({"resume", "runs/x"}, folder.path());
  ASSERT_TRUE(resumed.wait_for("validating")) << resumed.err();
  resumed.signal(SIGINT);
  const Finished again = resumed.finish();
  EXPECT_EQ(again.code, kStopped) << again.all();
  EXPECT_THAT(again.out, AllOf(HasSubstr("stopped: the validation after step " + end["step"].dump() + " is not done"),
                               HasSubstr("continue with: stoker resume runs/x\n")));
}

// A run that has a checkpoint can be resumed, wherever it was stopped.
TEST(Interrupt, BeforeAResumeGoesOnItSaysThatItStillCan) {
  const TempFolder folder;
  fs::copy(trained_run().run(), folder / "run", fs::copy_options::recursive);
  const std::string before = weights_of(folder / "run");
  for (const int number : {SIGINT, SIGTERM}) {
    StokerProcess resumed({"resume", "run", "epochs=2"}, folder.path());
    ASSERT_TRUE(resumed.wait_for("data: ")) << resumed.err();  // the model and the first batch are next
    resumed.signal(SIGSTOP);
    resumed.signal(number);
    resumed.signal(SIGCONT);
    const Finished stopped = resumed.finish();
    EXPECT_EQ(stopped.code, kStopped) << stopped.all();
    EXPECT_THAT(stopped.err, HasSubstr("it can still be resumed"));
    EXPECT_EQ(weights_of(folder / "run"), before);
  }
}

TEST(Interrupt, AReaderThatGoesAwayDoesNotEndTheRun) {
  const TempFolder folder;
  const std::string train = "'" + stoker_program().native() + "' train '" + trained_run().data().native() + "' run=";
  std::string words;
  for (const std::string& word : kQuick + Words{"epochs=20"}) {
    words += " " + word;
  }
  const std::string script = train + "json --json" + words + " | head -1; " + train + "text" + words + " | head -1";
  const Finished done = StokerProcess({"-c", script}, folder.path(), {}, "/bin/sh").finish();
  EXPECT_EQ(lines_of(done.out).size(), 2U) << done.all();
  for (const char* run : {"json", "text"}) {
    const Words events = lines_of(read_bytes(folder / "runs" / run / "metrics.jsonl"));
    ASSERT_FALSE(events.empty()) << run << done.all();
    EXPECT_THAT(events.back(), HasSubstr("done")) << run;
    EXPECT_FALSE(weights_of(folder / "runs" / run).empty());
  }
  EXPECT_THAT(done.err, HasSubstr("standard output cannot be written"));
}

TEST(Interrupt, AKilledRunGoesOnFromItsLastCheckpoint) {
  const TempFolder folder;
  StokerProcess training(Words{"train", trained_run().data(), "run=killed", "--json"} + kEndless, folder.path());
  ASSERT_TRUE(training.wait_for("\"kind\":\"last\"", 2)) << training.err();
  training.signal(SIGKILL);
  EXPECT_EQ(training.finish().code, 128 + SIGKILL);
  expect_resumes(folder / "runs/killed", folder);
}

TEST(Interrupt, ADiskThatRefusesACheckpointLeavesThePreviousOne) {
  const TempFolder folder;
  fs::copy(trained_run().run(), folder / "run", fs::copy_options::recursive);
  const std::string before = weights_of(folder / "run");
  const Finished refused = run_stoker({"resume", "run", "epochs=3"}, folder.path(), [] {
    const rlimit limit{100'000, 100'000};  // bytes per file; a checkpoint's weights take 700 kB
    return std::signal(SIGXFSZ, SIG_IGN) == SIG_ERR || ::setrlimit(RLIMIT_FSIZE, &limit) != 0 ? 94 : 0;
  });
  EXPECT_EQ(refused.code, kIoError) << refused.all();
  EXPECT_THAT(refused.err, AllOf(HasSubstr("safetensors"), HasSubstr("File too large")));
  EXPECT_EQ(weights_of(folder / "run"), before);
  EXPECT_EQ(run_stoker({"eval", "run"}, folder.path()).code, kDone);
  const Finished resumed = run_stoker({"resume", "run", "epochs=3"}, folder.path());
  EXPECT_EQ(resumed.code, kDone) << resumed.err;
  EXPECT_NE(weights_of(folder / "run"), before);
}

TEST(Interrupt, AFullDiskIsNamedAndThePreviousCheckpointLoads) {
  const TempFolder folder;
  fs::create_directory(folder / "small");
  const std::string program = stoker_program(), small = folder / "small", run = trained_run().run();
  // A private disk with room for the run and half a checkpoint more. It disappears with the child.
  const auto own_disk = [&] {
    std::uintmax_t size = 0;
    for (const auto& entry : fs::recursive_directory_iterator(run)) {
      size += entry.is_regular_file() ? (entry.file_size() + 4095) / 4096 * 4096 : 4096;
    }
    size += fs::file_size(fs::path(run) / "checkpoints/last/state.safetensors");
    const std::string options = "size=" + std::to_string(size);
    const bool made = ::unshare(CLONE_NEWNS) == 0 &&
                      ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
                      ::mount("tmpfs", small.c_str(), "tmpfs", 0, options.c_str()) == 0;
    return made ? 0 : 92;
  };
  const std::string script = "cp -a '" + run + "' small/run && '" + program +
                             "' resume small/run epochs=3; echo code $?; '" + program +
                             "' eval small/run --checkpoint last; echo code $?";
  const Finished done = StokerProcess({"-c", script}, folder.path(), own_disk, "/bin/sh").finish();
  if (done.code == 92) {
    GTEST_SKIP() << "no file system can be mounted here; the test above covers a refused write";
  }
  EXPECT_THAT(done.err, HasSubstr("No space left on device"));
  EXPECT_THAT(done.out, AllOf(HasSubstr("code 74\n"), HasSubstr("code 0\n")));
}

TEST(Interrupt, ARunFolderThatCannotBeWrittenIsNamed) {
  const TempFolder folder;
  fs::create_directory(folder / "closed");
  fs::permissions(folder / "closed", fs::perms::owner_read | fs::perms::owner_exec);
  const std::string data = trained_run().data();
  const Finished inside =
      run_stoker(Words{"train", data, "run=closed/run"} + kQuick, folder.path(), without_root_rights);
  EXPECT_EQ(inside.code, kIoError) << inside.all();
  EXPECT_THAT(inside.err, AllOf(HasSubstr("closed/run: the run folder cannot be created: Permission denied"),
                                HasSubstr("set run=PATH")));
  const Finished itself = run_stoker(Words{"train", data, "run=./closed"} + kQuick, folder.path(), without_root_rights);
  EXPECT_EQ(itself.code, kIoError) << itself.all();
  EXPECT_THAT(itself.err, AllOf(HasSubstr("closed"), HasSubstr("Permission denied")));
  fs::permissions(folder / "closed", fs::perms::owner_all);
  const Finished of_kernel = run_stoker(Words{"train", data, "run=/proc/run"} + kQuick, folder.path());
  EXPECT_EQ(of_kernel.code, kIoError) << of_kernel.all();
}

TEST(Interrupt, TheBestIsThatOfTheWholeRunAfterAResume) {
  const TempFolder folder;
  write_striped_set(folder, "data/train/", 8);
  write_striped_set(folder, "data/val/", 4, 50);
  const Finished first = run_stoker(Words{"train", "data", "run=x"} + kQuick + Words{"epochs=15"}, folder.path());
  ASSERT_EQ(first.code, kDone) << first.all();
  const auto best = [](const Finished& done) { return number_after(done.out, "best on validation: accuracy "); };
  // From now on every prediction is right one time in three: each image is in all three class folders.
  ASSERT_GT(std::stod("0" + best(first)), 0.34);
  fs::remove_all(folder / "data/val");
  for (const char* name : {"across", "down", "plain"}) {
    for (int i = 50; i < 54; ++i) {
      folder.write(fs::path("data/val") / name / (std::to_string(i) + ".png"), small_png(i, 12, 12));
    }
  }
  const Finished second = run_stoker({"resume", "runs/x", "epochs=16"}, folder.path());
  EXPECT_EQ(second.code, kDone) << second.all();
  EXPECT_EQ(best(second), best(first)) << second.out;
  // Nothing is evaluated twice: one evaluation per epoch.
  const Words events = lines_of(read_bytes(folder / "runs/x/metrics.jsonl"));
  EXPECT_EQ(std::count_if(events.begin(), events.end(),
                          [](const std::string& line) { return line.find("accuracy") != std::string::npos; }),
            16);
}

TEST(Interrupt, ARunThatFailsCanBeResumed) {
  const TempFolder folder;
  folder.write("people.csv", people());
  const Words words = Words{"train", "people.csv", "target=pay", "run=x"} + kShort +
                      Words{"lr=10000", "optimizer=sgd", "steps=50", "val=0"};
  const Finished failed = run_stoker(words + Words{"skip_limit=2"}, folder.path());
  EXPECT_EQ(failed.code, 1) << failed.all();
  EXPECT_THAT(failed.err, HasSubstr("3 steps in a row were not finite"));
  const std::string step = number_after(failed.out, "note: step ");
  EXPECT_THAT(failed.out,
              HasSubstr("step " + step + " was saved before the error; `stoker resume runs/x` continues from there"));
  EXPECT_THAT(run_stoker({"info", "runs/x"}, folder.path()).out, HasSubstr("at step " + step));
  const Finished resumed = run_stoker({"resume", "runs/x"}, folder.path());
  EXPECT_EQ(resumed.code, 1) << resumed.all();
  EXPECT_THAT(resumed.out, HasSubstr("continuing after step " + step));
}

// Fewer steps than skip_limit, once with a validation that shows the NaN and once without validation.
TEST(Interrupt, ARunThatEndsInNaNIsNotDone) {
  const TempFolder folder;
  folder.write("people.csv", people());
  for (const char* val : {"val=0.2", "val=0"}) {
    const Finished failed = run_stoker(Words{"train", "people.csv", "target=pay", "run=runs/" + std::string(val)} +
                                           kShort + Words{"lr=10000", "optimizer=sgd", "steps=8", val},
                                       folder.path());
    EXPECT_EQ(failed.code, 1) << failed.all();
    EXPECT_THAT(failed.err, AllOf(HasSubstr("the run ended with a loss of nan"), HasSubstr("step 8"),
                                  HasSubstr("in a row were not finite; the last batch of 16 began with")));
    EXPECT_THAT(read_bytes(folder / "runs" / val / "metrics.jsonl"), HasSubstr("\"outcome\":\"failed\""));
    EXPECT_FALSE(fs::exists(folder / "runs" / val / "checkpoints/best")) << "saved although its weights give NaN";
    EXPECT_EQ(run_stoker({"resume", "runs/" + std::string(val)}, folder.path()).code, 1)
        << "nothing was repaired since";
  }
}

TEST(Interrupt, MoreEpochsOnResumeSayWhatBecomesOfTheLearningRate) {
  const TempFolder folder;
  fs::copy(trained_run().run(), folder / "run", fs::copy_options::recursive);
  fs::copy(folder / "run", folder / "kept", fs::copy_options::recursive);
  const Finished longer = run_stoker({"resume", "run", "epochs=2"}, folder.path());
  EXPECT_EQ(longer.code, kDone) << longer.all();
  EXPECT_THAT(longer.out, AllOf(HasSubstr("schedule had 3 steps and now has 6: at step 4 the learning rate goes from "),
                                HasSubstr("; schedule_steps=3 keeps the old schedule")));
  const Finished kept = run_stoker({"resume", "kept", "epochs=2", "schedule_steps=3"}, folder.path());
  EXPECT_EQ(kept.code, kDone) << kept.all();
  EXPECT_THAT(kept.out, ::testing::Not(HasSubstr("the learning rate goes from")));
  const auto rates = [&](const char* run) {
    std::vector<double> found;
    for (const std::string& line : lines_of(read_bytes(folder / run / "metrics.jsonl"))) {
      if (const auto event = nlohmann::json::parse(line); event["event"] == "step") {
        found.push_back(event["lr"]);
      }
    }
    return found;
  };
  ASSERT_EQ(rates("kept").size(), 6U);
  EXPECT_EQ(rates("kept")[3], rates("kept")[2]);
  EXPECT_GT(rates("run")[3], rates("run")[2]);
}

TEST(Interrupt, AFinishedRunSaysWhatToAskFor) {
  const TempFolder folder;
  fs::copy(trained_run().run(), folder / "run", fs::copy_options::recursive);
  const Finished done = run_stoker({"resume", "run"}, folder.path());
  EXPECT_EQ(done.code, kDone) << done.all();
  EXPECT_THAT(done.out,
              HasSubstr("nothing left to train: all epochs (1) are done; for more: `stoker resume run epochs=2`"));
  const Finished more = run_stoker({"resume", "run", "epochs=2"}, folder.path());
  EXPECT_THAT(more.out, ::testing::Not(HasSubstr("nothing left")));
}

TEST(Interrupt, ARunWithoutACheckpointSaysHowToStartAgain) {
  const TempFolder folder;
  fs::copy(trained_run().run(), folder / "early", fs::copy_options::recursive);
  fs::remove_all(folder / "early/checkpoints");
  const Finished early = run_stoker({"resume", "early"}, folder.path());
  EXPECT_EQ(early.code, kDataError) << early.all();
  EXPECT_THAT(early.err, AllOf(HasSubstr("early: has no checkpoint"), HasSubstr("--config early/config.toml")));
  const Finished again = run_stoker({"train", "--config", "early/config.toml", "run=again"}, folder.path());
  EXPECT_EQ(again.code, kDone) << again.all();
}

TEST(Interrupt, WhatCannotGoOnIsRefused) {
  const TempFolder folder;
  write_striped_set(folder, "data/train/", 4);
  write_striped_set(folder, "data/val/", 2, 50);
  ASSERT_EQ(run_stoker(Words{"train", "data", "run=x"} + kQuick, folder.path()).code, kDone);
  folder.write("data/train/down/99.png", small_png(99));
  const Finished more = run_stoker({"resume", "runs/x", "epochs=2"}, folder.path());
  EXPECT_EQ(more.code, kDataError) << more.all();
  EXPECT_THAT(more.err, AllOf(HasSubstr("now has 13 training samples, but the run was started with 12"),
                              HasSubstr("weights=runs/x")));
  folder.write("data/train/fourth/0.png", small_png(98));
  const auto results = run_all({{"resume", "runs/x", "epochs=2"},
                                {"resume", "runs/x", "lr=0.1"},
                                {"resume", "runs/x", "epochs=auto"},
                                {"resume", "data"}},
                               folder.path());
  EXPECT_EQ(results[0].code, kDataError) << results[0].all();
  EXPECT_THAT(results[0].err, HasSubstr("now has 4 classes, but the run was started with 3"));
  EXPECT_EQ(results[1].code, kUsage);
  EXPECT_THAT(results[1].err, HasSubstr("only epochs, steps, time, eval_every, save_every, early_stop, schedule_steps, "
                                        "threads, ranks, rank_timeout, pipeline and pipeline_cut may change, not lr"));
  EXPECT_EQ(results[2].code, kUsage) << results[2].all();
  EXPECT_EQ(results[3].code, kUsage);
  EXPECT_THAT(results[3].err, HasSubstr("data: is not a run folder"));
}

}  // namespace
}  // namespace stoker::testing
