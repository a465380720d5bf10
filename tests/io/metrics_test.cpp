// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <limits>

#include "stoker/base/error.h"
#include "stoker/base/file.h"
#include "stoker/io/event_bus.h"
#include "stoker/io/loggers/cut_metrics.h"
#include "stoker/io/loggers/metrics_csv.h"
#include "stoker/io/loggers/metrics_jsonl.h"
#include "support/temp_folder.h"

namespace stoker::io {
namespace {

using namespace core;
namespace fs = std::filesystem;
using ::testing::HasSubstr;
using testing::TempFolder;

class Known final : public PendingScalars {
 public:
  explicit Known(std::vector<float> values) {
    std::ranges::copy(values, scalars_.values.begin());
    scalars_.count = values.size();
  }
  [[nodiscard]] Scalars read() const override { return scalars_; }

 private:
  Scalars scalars_;
};

StepFinished step(std::int64_t number, std::vector<float> values) {
  StepFinished event;
  event.position = {(number - 1) / 4, (number - 1) % 4};
  event.step = number;
  event.samples = 128;
  event.seconds = 0.25;
  event.data_wait_seconds = 0.1;
  event.lr = 1e-5;
  event.memory_bytes = number == 1 ? -1 : 1'000'000;
  event.scalars = std::make_shared<Known>(std::move(values));
  return event;
}

RunStarted start(std::int64_t first_step, const std::string& folder) {
  RunStarted event;
  event.folder = folder;
  event.title = "a title";
  event.scalars = {"loss", "grad, norm"};
  event.epochs = 3;
  event.steps_per_epoch = 4;
  event.first_step = first_step;
  event.last_step = 12;
  return event;
}

Evaluated evaluated(std::int64_t number) {
  return {.position = {(number - 1) / 4, 3},
          .step = number,
          .split = "val",
          .metrics = {{"accuracy", 0.5, true}, {"loss", std::numeric_limits<double>::quiet_NaN(), false}},
          .seconds = 2,
          .best = number == 4};
}

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

TEST(MetricsCsv, IsARowAStepAndARowAMetric) {
  const TempFolder temp;
  MetricsCsv csv(temp.path());
  csv.on(start(0, "x"));
  csv.on(step(1, {0.1F, kNan}));
  csv.on(step(2, {-kInfinity}));
  csv.on(evaluated(4));
  csv.on(CheckpointSaved{4, "x", "last"});
  csv.on(RunFinished{4, "done", "", 1});
  csv.flush();
  EXPECT_EQ(read_text(temp / "metrics.csv"),
            "kind,epoch,step,samples,seconds,data_wait,lr,memory_bytes,split,metric,value,loss,\"grad, norm\"\n"
            "step,0,1,128,0.25,0.1,1e-05,,,,,0.1,nan\n"
            "step,0,2,128,0.25,0.1,1e-05,1000000,,,,-inf,\n"
            "eval,0,4,,2,,,,val,accuracy,0.5,,\n"
            "eval,0,4,,2,,,,val,loss,nan,,\n");
}

TEST(MetricsCsv, RefusesAFileWithOtherColumns) {
  const TempFolder temp;
  temp.write("metrics.csv", "kind,epoch,step\n");
  MetricsCsv csv(temp.path());
  EXPECT_THROW(csv.on(start(0, "x")), IoError);
}

TEST(MetricsJsonl, IsAnObjectAnEvent) {
  const TempFolder temp;
  MetricsJsonl jsonl(temp.path());
  jsonl.on(start(0, "x"));
  jsonl.on(step(1, {0.1F, kNan}));
  jsonl.on(evaluated(4));
  jsonl.on(CheckpointSaved{4, "x", "last"});
  jsonl.on(Evaluating{4, "val", 1, 2});  // not written
  jsonl.on(FaultSurvived{5, "non_finite", "skipped"});
  jsonl.on(Finding{"bad name \xff"});
  jsonl.on(Finding{"bad name \xff"});
  jsonl.on(RunFinished{4, "done", "all", 1.5});
  jsonl.flush();
  EXPECT_EQ(
      read_text(temp / "metrics.jsonl"),
      R"({"event":"run_started","title":"a title","scalars":["loss","grad, norm"],"epochs":3,"steps_per_epoch":4,)"
      R"("first_step":0,"last_step":12})"
      "\n"
      R"({"event":"step","epoch":0,"step":1,"samples":128,"seconds":0.25,"data_wait":0.1,"lr":1e-05,)"
      R"("scalars":{"loss":0.1,"grad, norm":"nan"}})"
      "\n"
      R"({"event":"evaluated","epoch":0,"step":4,"split":"val","seconds":2,"best":true,)"
      R"("metrics":{"accuracy":0.5,"loss":"nan"}})"
      "\n"
      R"({"event":"checkpoint","step":4,"kind":"last"})"
      "\n"
      R"({"event":"fault","step":5,"kind":"non_finite","text":"skipped"})"
      "\n"
      R"({"event":"finding","text":"bad name \\xff"})"
      "\n"
      R"({"event":"run_finished","step":4,"outcome":"done","text":"all","seconds":1.5})"
      "\n");
}

// The events of a run of 12 steps, with an evaluation after every fourth, between two of its steps.
void run(EventSink& csv, EventSink& jsonl, const std::string& folder, std::int64_t first, std::int64_t last) {
  const auto both = [&](const Event& event) {
    csv.on(event);
    jsonl.on(event);
  };
  both(start(first, folder));
  both(Finding{"this machine has 2 cores"});
  for (std::int64_t i = first + 1; i <= last; ++i) {
    both(step(i, {1.0F / static_cast<float>(i), 2}));
    if (i % 4 == 0) {
      both(evaluated(i));
    }
    if (i % 5 == 0) {
      both(FaultSurvived{i, "non_finite", "skipped"});
    }
  }
  both(CheckpointSaved{last, folder, "last"});
  both(RunFinished{last, last == 12 ? "done" : "stopped", "", 1});
  csv.flush();
  jsonl.flush();
}

// Checkpoints are of the session that made them.
std::string without_checkpoints(const std::filesystem::path& path) {
  std::string kept, line;
  std::istringstream text(read_text(path));
  while (std::getline(text, line)) {
    kept += line.starts_with(R"({"event":"checkpoint")") ? "" : line + "\n";
  }
  return kept;
}

TEST(CutMetrics, AResumedRunsFilesEqualAnUninterruptedOnes) {
  const TempFolder whole;
  {
    MetricsCsv csv(whole.path());
    MetricsJsonl jsonl(whole.path());
    run(csv, jsonl, "a", 0, 12);
  }
  for (std::int64_t checkpoint = 0; checkpoint < 12; ++checkpoint) {
    for (const std::int64_t stopped : {checkpoint, std::min<std::int64_t>(checkpoint + 3, 11)}) {
      const TempFolder parts;
      {
        MetricsCsv csv(parts.path());
        MetricsJsonl jsonl(parts.path());
        run(csv, jsonl, "b", 0, stopped);
      }
      for (const char* name : {"metrics.csv", "metrics.jsonl"}) {  // as after a kill in the middle of a line
        const std::string text = read_text(parts / name);
        parts.write(name, text + text.substr(text.rfind('\n', text.size() - 2) + 1, 9));
      }
      cut_metrics(parts.path(), checkpoint, checkpoint);
      MetricsCsv csv(parts.path());
      MetricsJsonl jsonl(parts.path());
      run(csv, jsonl, "b", checkpoint, 12);
      for (const char* name : {"metrics.csv", "metrics.jsonl"}) {
        EXPECT_EQ(without_checkpoints(parts / name), without_checkpoints(whole / name))
            << name << " " << checkpoint << " " << stopped;
      }
    }
  }
}

TEST(CutMetrics, AnEvaluationThatTheCheckpointDoesNotKnowIsMadeAgain) {
  const TempFolder temp;
  temp.write("metrics.csv",
             "kind,epoch,step,samples,seconds,data_wait,lr,memory_bytes,split,metric,value,loss\n"
             "eval,0,3,,1,,,,val,accuracy,0.4,\nstep,1,6,8,1,0,0.1,,,,,2\neval,1,6,,1,,,,val,accuracy,0.5,\n"
             "eval,1,6,,1,,,,test,accuracy,0.6,\n");
  temp.write("metrics.jsonl", R"({"event":"evaluated","split":"val","step":3})"
                              "\n"
                              R"({"event":"step","step":6})"
                              "\n"
                              R"({"event":"evaluated","split":"val","step":6})"
                              "\n"
                              R"({"event":"evaluated","split":"test","step":6})"
                              "\n");
  const auto lines = [&](const char* name) { return std::ranges::count(read_text(temp / name), '\n'); };
  cut_metrics(temp.path(), 6, 6);  // removes the evaluation of the test split
  EXPECT_EQ(lines("metrics.csv"), 4);
  EXPECT_EQ(lines("metrics.jsonl"), 3);
  cut_metrics(temp.path(), 6, 3);  // and the one made after the checkpoint was saved
  EXPECT_EQ(lines("metrics.csv"), 3);
  EXPECT_EQ(lines("metrics.jsonl"), 2);
}

TEST(CutMetrics, NoFilesAreNoneToCut) {
  const TempFolder temp;
  cut_metrics(temp.path(), 5, 5);
  EXPECT_TRUE(fs::is_empty(temp.path()));
}

TEST(Metrics, HalfALineIsCutOffWhenTheFileIsOpened) {
  const TempFolder temp;
  temp.write("metrics.jsonl", "{\"event\":\"run_started\"}\n{\"event\":\"st");
  const MetricsJsonl jsonl(temp.path());
  EXPECT_EQ(read_text(temp / "metrics.jsonl"), "{\"event\":\"run_started\"}\n");
}

TEST(Metrics, AFullDiskEndsTheLogAndNotTheRun) {
  const TempFolder temp;
  fs::create_symlink("/dev/full", temp / "metrics.csv");
  {
    EventBus bus;
    bus.add(std::make_unique<MetricsCsv>(temp.path()));
    bus.add(std::make_unique<MetricsJsonl>(temp.path()));
    bus.emit(start(0, "x"));
    for (int i = 1; i <= 1000; ++i) {
      bus.emit(step(i, {1}));
    }
  }
  const std::string events = read_text(temp / "metrics.jsonl");
  EXPECT_EQ(std::ranges::count(events, '\n'), 1002);
  const std::size_t finding = events.find("\"finding\"");  // the other log reports the failure
  ASSERT_NE(finding, std::string::npos);
  const std::string line = events.substr(finding, events.find('\n', finding) - finding);
  EXPECT_THAT(line, HasSubstr("metrics.csv"));
  EXPECT_THAT(line, HasSubstr("No space left"));
}

TEST(Metrics, AFolderThatIsNotThereIsAnError) {
  const TempFolder temp;
  EXPECT_THROW(MetricsCsv(temp / "missing"), IoError);
  EXPECT_THROW(MetricsJsonl(temp / "missing"), IoError);
}

}  // namespace
}  // namespace stoker::io
