// SPDX-License-Identifier: Apache-2.0
// Writes the logs of a training into a run folder, for the Python tests that read them:
//   written_run FOLDER FIRST LAST [TOTAL [LOG...]]
// The sinks get steps FIRST+1 to LAST of TOTAL and the artifacts in FOLDER/artifacts, and flush. Then the program
// prints "written" and waits for input: a line ends the run properly; the end of the input acts like a kill.
// LOG: prometheus:PORT, wandb, mlflow:ADDRESS; with these there are figures of the machine and of phases, too.
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iostream>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "stoker/base/clock.h"
#include "stoker/io/event_bus.h"
#include "stoker/io/loggers/metrics_csv.h"
#include "stoker/io/loggers/metrics_jsonl.h"
#include "stoker/io/loggers/mlflow.h"
#include "stoker/io/loggers/prometheus.h"
#include "stoker/io/loggers/tensorboard.h"
#include "stoker/io/loggers/wandb.h"

namespace {

using namespace stoker;
using namespace stoker::core;
namespace fs = std::filesystem;

class Known final : public PendingScalars {
 public:
  explicit Known(float loss) {
    scalars_.values = {loss, 2 * loss};
    scalars_.count = 2;
  }
  [[nodiscard]] Scalars read() const override { return scalars_; }

 private:
  Scalars scalars_;
};

RunStarted start(const std::string& folder, std::int64_t first, std::int64_t total, bool long_value) {
  RunStarted event;
  event.folder = folder;
  event.title = "a *run* of <nothing>";
  event.plan = {{"lr", "0.1", Origin::kDefault, "of the recipe"},
                {"model", "größe", Origin::kCommandLine, "asked for"},
                {"time", "inf", Origin::kDefault, "no limit"}};
  if (long_value) {
    std::string words;
    for (int i = 0; i < 20'000; ++i) {
      words += "long ";
    }
    event.plan.push_back({"long", words, Origin::kConfig, "longer than a block of a file"});
  }
  event.scalars = {"loss", "größe, cm"};
  event.epochs = (total + 99) / 100;
  event.steps_per_epoch = 100;
  event.first_step = first;
  event.last_step = total;
  return event;
}

StepFinished step(std::int64_t number) {
  StepFinished event;
  event.position = {(number - 1) / 100, (number - 1) % 100};
  event.step = number;
  event.samples = 64;
  event.seconds = 0.5;
  event.data_wait_seconds = 0.125;
  event.lr = 0.1;
  event.memory_bytes = 1 << 20;
  const float loss = number == 7 ? std::numeric_limits<float>::quiet_NaN() : 1.0F / static_cast<float>(number);
  event.scalars = std::make_shared<Known>(loss);
  return event;
}

Evaluated evaluated(std::int64_t number) {
  Evaluated event;
  event.position = {number / 100, 0};
  event.step = number;
  event.split = "val";
  event.metrics = {{"accuracy", static_cast<double>(number) / 1024, true}, {"f1/größe", 0.5, true}};
  event.seconds = 1;
  return event;
}

// Of two periods: an hour that ends now, and one four hours ago with a figure that has gone since.
void observe_machine(io::EventBus& bus, std::int64_t last) {
  const double hour = 3600, now = std::floor(clock_s(CLOCK_REALTIME)) + 0.5;
  bus.emit(Monitored{now - 4 * hour, hour, last, {{"machine.stolen_cores", 0.75}}});
  bus.emit(Monitored{now,
                     hour,
                     last,
                     {{"gpu0.power_watts", 95.5},
                      {"gpu1.power_watts", 70},
                      {"process.resident_bytes", 1 << 30},
                      {"process.cpu_cores", 0.75},
                      {"threads.loader (1).cpu_cores", 0.25},
                      {"threads.main.cpu_cores", 0.5}}});
}

// Where the time of the steps went: two periods, and all of them, whose time was estimated anew.
void observe_steps(io::EventBus& bus, std::int64_t last) {
  Anatomy period;
  period.step = last / 2;
  period.steps = last / 2;
  period.seconds = 4;
  period.phases = {{"forward", 1, 0.5, 0.25}, {"device wait", 3, -1, -1}};
  period.marks = {{"my \"stage\"", 0.5, -1, -1}};
  period.p50 = 0.1;
  period.p90 = 0.2;
  period.p99 = 0.3;
  period.slowest = 0.4;
  bus.emit(period);
  period.step = last;
  period.steps = last - last / 2;
  bus.emit(period);
  Anatomy whole = period;
  whole.whole = true;
  whole.steps = last;
  whole.seconds = 8;
  whole.phases = {{"forward", 1.75, 0.875, 0.5}, {"device wait", 6.25, -1, -1}};
  whole.marks = {{"my \"stage\"", 0.75, -1, -1}};
  whole.p50 = whole.p90 = whole.p99 = whole.slowest = 7;
  bus.emit(whole);
}

void observe(io::EventBus& bus, std::int64_t last) {
  observe_machine(bus, last);
  observe_steps(bus, last);
  bus.emit(SlowStep{1, last, 2, 0.1, "fetch", "slow sample", {}});
  Fed fed;
  fed.step = last;
  fed.source.threads = 3;
  fed.source.stages = {{"JPEG decode", 1.5}};
  bus.emit(fed);
  bus.emit(CheckpointSaved{last, "checkpoints/last", "last"});
}

std::unique_ptr<EventSink> log_for(const std::string& name, const fs::path& run, io::EventBus& bus) {
  if (name.starts_with("prometheus:")) {
    return std::make_unique<io::PrometheusEndpoint>(static_cast<std::uint16_t>(std::stoi(name.substr(11))), bus);
  }
  if (name.starts_with("mlflow:")) {
    return std::make_unique<io::MlflowLog>(run, name.substr(7), bus);
  }
  return std::make_unique<io::WandbLog>(run, bus);
}

void write(io::EventBus& bus, const fs::path& run, std::int64_t first, std::int64_t last, std::int64_t total,
           bool long_value) {
  bus.emit(start(run.native(), first, total, long_value));
  bus.emit(Finding{"the first of <b>two</b>"});
  bus.emit(Finding{"the second: one core is busy"});
  for (std::int64_t i = first + 1; i <= last; ++i) {
    bus.emit(step(i));
    if (i == 7) {
      bus.emit(FaultSurvived{i, "non_finite", "step 7 was skipped"});
    }
    if (i % 100 == 0) {
      bus.emit(evaluated(i));
      bus.emit(WeightHistograms{i, {{"größe.weight", -1, 1, {5, 7}}, {"bias", 2.5, 3.5, {static_cast<double>(i)}}}});
      bus.flush();  // so that no step is merged with the next
    }
  }
  std::set<std::string> names;
  if (fs::is_directory(run / "artifacts")) {
    for (const auto& entry : fs::directory_iterator(run / "artifacts")) {
      names.insert(entry.path().filename().native());
    }
  }
  for (const std::string& name : names) {
    bus.emit(Artifact{last, fs::path(name).stem().native(), "artifacts/" + name});
  }
  bus.flush();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) {
    std::cerr << "usage: written_run FOLDER FIRST LAST [TOTAL [LOG...]]\n";
    return 2;
  }
  const fs::path run = argv[1];
  const std::int64_t first = std::stoll(argv[2]), last = std::stoll(argv[3]);
  const std::int64_t total = argc > 4 ? std::stoll(argv[4]) : last;
  io::EventBus bus;
  const std::vector<std::string> logs(argv + std::min(argc, 5), argv + argc);
  for (const std::string& log : logs) {
    bus.add(log_for(log, run, bus), !log.starts_with("mlflow"));  // a slow server must not hold up the run
  }
  bus.add(std::make_unique<io::MetricsCsv>(run), true);
  bus.add(std::make_unique<io::MetricsJsonl>(run), true);
  bus.add(std::make_unique<io::TensorBoardLog>(run), true);
  write(bus, run, first, last, total, !logs.empty());
  if (!logs.empty()) {
    observe(bus, last);
    bus.flush();
  }
  std::cout << "written" << std::endl;
  std::string line;
  if (!std::getline(std::cin, line)) {
    ::_exit(1);
  }
  bus.emit(RunFinished{last, "done", "", 1});
  return 0;
}
