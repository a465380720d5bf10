// SPDX-License-Identifier: Apache-2.0
// Which values the sink writes, when and where. tests/house/tensorboard_test.py reads them with TensorBoard itself.
#include "stoker/io/loggers/tensorboard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>

#include "stoker/base/error.h"
#include "stoker/base/file.h"
#include "stoker/io/event_bus.h"
#include "support/as_nobody.h"
#include "support/event_files.h"
#include "support/temp_folder.h"

namespace stoker::io {
namespace {

using namespace core;
namespace fs = std::filesystem;
using ::testing::ElementsAre;
using testing::event_files;
using testing::EventFiles;
using ::testing::HasSubstr;
using testing::TempFolder;

class Known final : public PendingScalars {
 public:
  explicit Known(float value) {
    scalars_.values[0] = value;
    scalars_.count = 1;
  }
  [[nodiscard]] Scalars read() const override { return scalars_; }

 private:
  Scalars scalars_;
};

RunStarted start(std::int64_t first, std::int64_t last) {
  RunStarted event;
  event.scalars = {"loss", "absent"};
  event.plan = {{"lr", "0.1", Origin::kDefault, "why"}};
  event.first_step = first;
  event.last_step = last;
  return event;
}

StepFinished step(std::int64_t number) {
  StepFinished event;
  event.step = number;
  event.samples = 10;
  event.seconds = 0.5;
  event.data_wait_seconds = number % 2 == 0 ? 0.25 : 0;
  event.lr = 0.125;
  event.scalars = std::make_shared<Known>(static_cast<float>(number));
  return event;
}

Evaluated evaluated(std::int64_t number, const char* split) {
  Evaluated event;
  event.step = number;
  event.split = split;
  event.metrics = {{"accuracy", 0.5, true}, {"f1/größe", 0.25, true}};
  return event;
}

void session(const fs::path& run, std::int64_t first, std::int64_t last, std::int64_t total) {
  TensorBoardLog log(run);
  log.on(start(first, total));
  for (std::int64_t i = first + 1; i <= last; ++i) {
    log.on(step(i));
  }
  log.flush();
}

std::vector<std::int64_t> steps_of(const EventFiles& written, const std::string& tag) {
  std::vector<std::int64_t> steps;
  for (const auto& [number, value] : written.scalars.at(tag)) {
    steps.push_back(number);
  }
  return steps;
}

TEST(TensorBoardLog, WritesEachStepOfAShortRun) {
  const TempFolder temp;
  session(temp.path(), 0, 5, 5);
  const EventFiles written = testing::read_event_files(temp.path());
  EXPECT_THAT(steps_of(written, "train/loss"), ElementsAre(1, 2, 3, 4, 5));
  EXPECT_EQ(written.scalars.at("train/loss").at(3), 3.0F);
  EXPECT_EQ(written.scalars.at("optimizer/lr").at(1), 0.125F);
  EXPECT_EQ(written.scalars.at("speed/samples_per_second").at(2), 20.0F);
  EXPECT_EQ(written.scalars.at("speed/data_wait_share").at(1), 0.0F);
  EXPECT_EQ(written.scalars.at("speed/data_wait_share").at(2), 0.5F);
  EXPECT_FALSE(written.scalars.contains("train/absent"));
  EXPECT_FALSE(written.scalars.contains("memory/device_bytes"));  // unknown, not 0
  EXPECT_THAT(written.starts, ElementsAre(1));
}

TEST(TensorBoardLog, ThinsALongRunByItsStepNumbersAlone) {
  constexpr std::int64_t kTotal = 50'003;  // all up to 1,000, then every fifth, and the last
  const TempFolder whole, parts;
  session(whole.path(), 0, kTotal, kTotal);
  session(parts.path(), 0, 20'002, kTotal);
  session(parts.path(), 20'002, kTotal, kTotal);
  const EventFiles one = testing::read_event_files(whole.path()), two = testing::read_event_files(parts.path());
  std::vector<std::int64_t> expected;
  for (std::int64_t i = 1; i <= kTotal; ++i) {
    if (i <= 1000 || i % 5 == 0 || i == kTotal) {
      expected.push_back(i);
    }
  }
  EXPECT_EQ(steps_of(one, "train/loss"), expected);
  EXPECT_EQ(one.scalars.at("train/loss"), two.scalars.at("train/loss"));
  EXPECT_EQ(one.scalars.at("speed/samples_per_second").at(10'000), 20.0F);
  // 3 of 5 steps waited for half of their time.
  EXPECT_NEAR(one.scalars.at("speed/data_wait_share").at(10'000), 0.3F, 1e-6);
  EXPECT_THAT(two.starts, ElementsAre(1, 20'003));
}

TEST(TensorBoardLog, AMillionStepsAreAFewMegabytes) {
  const TempFolder temp;
  TensorBoardLog log(temp.path());
  log.on(start(0, 1'000'000));
  StepFinished event = step(1);
  for (event.step = 1; event.step <= 1'000'000; ++event.step) {
    log.on(event);
  }
  log.flush();
  EXPECT_LT(fs::file_size(event_files(temp.path()).front()), 4U << 20);
  EXPECT_GT(steps_of(testing::read_event_files(temp.path()), "train/loss").size(), 10'000U);
}

TEST(TensorBoardLog, AStepThatStandsForMergedOnesIsWrittenWhereOneOfThemWasDue) {
  const TempFolder temp;
  TensorBoardLog log(temp.path());
  log.on(start(0, 100'000));
  for (const std::int64_t number : {1500, 1509, 1512, 1519, 1520}) {
    log.on(step(number));
  }
  log.flush();
  EXPECT_THAT(steps_of(testing::read_event_files(temp.path()), "train/loss"), ElementsAre(1500, 1512, 1520));
}

TEST(TensorBoardLog, FilesSortInTheOrderOfTheirSessions) {
  const TempFolder temp;
  temp.write("tensorboard/events.out.tfevents.9000000000.host.1", "");  // the clock has been set back since
  fs::path before = event_files(temp.path()).back();
  for (int i = 0; i < 12; ++i) {  // within one second
    session(temp.path(), i, i + 1, 20);
    const fs::path after = event_files(temp.path()).back();
    EXPECT_GT(after, before);
    EXPECT_GT(fs::file_size(after), 0U);
    before = after;
  }
  EXPECT_EQ(event_files(temp.path()).size(), 13U);
}

TEST(TensorBoardLog, WritesEvaluationsAndTheTableOfHyperParameters) {
  const TempFolder temp;
  TensorBoardLog log(temp.path());
  log.on(start(0, 8));
  log.on(evaluated(4, "val"));
  log.on(evaluated(8, "val"));
  log.on(evaluated(8, "test"));
  log.on(RunFinished{8, "stopped", "", 1});
  log.flush();
  EventFiles written = testing::read_event_files(temp.path());
  EXPECT_THAT(steps_of(written, "val/accuracy"), ElementsAre(4, 8));
  EXPECT_EQ(written.scalars.at("val/f1/größe").at(8), 0.25F);
  EXPECT_THAT(steps_of(written, "test/accuracy"), ElementsAre(8));
  EXPECT_THAT(written.hparams, ElementsAre("_hparams_/session_start_info", "_hparams_/experiment"));
  log.on(RunFinished{8, "done", "", 1});
  log.flush();
  EXPECT_EQ(testing::read_event_files(temp.path()).hparams.back(), "_hparams_/session_end_info");
}

TEST(TensorBoardLog, WritesFindingsAndFaultsAsText) {
  const TempFolder temp;
  TensorBoardLog log(temp.path());
  log.on(start(0, 8));
  log.on(Finding{"a <b> \xff"});
  log.on(Finding{"second"});
  log.on(FaultSurvived{3, "non_finite", "one"});
  log.on(FaultSurvived{3, "bad_sample", "two"});
  log.on(FaultSurvived{4, "non_finite", "three"});
  log.flush();
  const EventFiles written = testing::read_event_files(temp.path());
  EXPECT_EQ(written.texts.at("notes/findings").at(0), "- a &lt;b> \\\\xff\n- second\n");
  EXPECT_EQ(written.texts.at("notes/faults").at(3), "- one\n- two\n");
  EXPECT_EQ(written.texts.at("notes/faults").at(4), "- three\n");
}

TEST(TensorBoardLog, ShowsImagesAndTextOfArtifacts) {
  const std::string png("\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\0\0\1\2\0\0\0\3rest", 28);
  const TempFolder temp;
  temp.write("artifacts/x.png", png);
  temp.write("artifacts/y.png", "no image");
  temp.write("artifacts/text.json", R"({"kind":"text","title":"Samples at step 7","text":"a <b>\nc"})");
  temp.write("artifacts/table.json", R"({"kind":"table","title":"T","columns":[],"rows":[]})");
  temp.write("artifacts/bad.json", R"({"kind":"gallery"})");
  std::string items = R"({"image":"y.png","caption":"n*o*"})";
  for (int i = 0; i < 20; ++i) {
    items += R"(,{"image":"x.png","caption":"c","good":true})";
  }
  temp.write("artifacts/gallery.json", R"({"kind":"gallery","title":"Mistakes","items":[)" + items + "]}");
  TensorBoardLog log(temp.path());
  log.on(start(0, 8));
  for (const char* name : {"x.png", "text.json", "table.json", "bad.json", "gallery.json", "gone.json"}) {
    log.on(Artifact{7, fs::path(name).stem(), fs::path("artifacts") / name});
  }
  log.flush();
  const EventFiles written = testing::read_event_files(temp.path());
  EXPECT_EQ(written.texts.at("x").at(7), png);
  EXPECT_EQ(written.strings.at("x"), 3);  // width, height, image
  EXPECT_EQ(written.texts.at("Samples").at(7), "    a <b>\n    c");
  EXPECT_EQ(written.strings.at("Mistakes"), 2 + 16);
  EXPECT_THAT(written.texts.at("Mistakes/captions").at(7), HasSubstr("1. n\\*o\\* (not shown: "));
  EXPECT_THAT(written.texts.at("Mistakes/captions").at(7), HasSubstr("1. c \u2713\n"));
  EXPECT_FALSE(written.texts.contains("T"));
  EXPECT_THAT(written.texts.at("notes/findings").at(0), HasSubstr("bad.json"));
  EXPECT_THAT(written.texts.at("notes/findings").at(0), HasSubstr("gone.json"));
}

// Keeps the texts of findings.
class Listener final : public EventSink {
 public:
  explicit Listener(std::vector<std::string>& findings) : findings_(findings) {}
  void on(const Event& event) override {
    if (const auto* finding = std::get_if<Finding>(&event)) {
      findings_.push_back(finding->text);
    }
  }

 private:
  std::vector<std::string>& findings_;
};

// The findings of the bus about a log in this folder during a run.
std::vector<std::string> findings_of_run(const fs::path& folder) {
  std::vector<std::string> findings;
  {
    EventBus bus;
    bus.add(std::make_unique<Listener>(findings), true);
    bus.add(std::make_unique<TensorBoardLog>(folder), true);
    bus.emit(start(0, 1000));
    for (int i = 1; i <= 1000; ++i) {
      bus.emit(step(i));
    }
    bus.flush();  // returns when the log is given up
    bus.flush();  // returns when the finding about it has arrived
  }
  return findings;
}

TEST(TensorBoardLog, AFullDiskEndsTheLogAndNotTheRun) {
  const TempFolder temp;
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit small{10'000, before.rlim_max};
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const std::vector<std::string> findings = findings_of_run(temp.path());
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_THAT(findings[0], HasSubstr("events.out.tfevents."));
  EXPECT_THAT(findings[0], HasSubstr("File too large"));
}

TEST(TensorBoardLog, AFolderThatCannotBeWrittenEndsTheLogAndNotTheRun) {
  const TempFolder temp;
  temp.write("tensorboard", "a file");
  const std::vector<std::string> findings = findings_of_run(temp.path());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_THAT(findings[0], HasSubstr(temp.path().native()));

  const TempFolder locked;
  fs::permissions(locked.path(), fs::perms::owner_all | fs::perms::others_exec);
  EXPECT_EQ(testing::as_nobody([&] {
              try {
                TensorBoardLog(locked.path()).on(start(0, 1));
              } catch (const IoError& error) {
                return std::string_view(error.what()).find("Permission denied") == std::string_view::npos ? 2 : 0;
              }
              return 1;
            }),
            0);
}

}  // namespace
}  // namespace stoker::io
