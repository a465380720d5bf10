// SPDX-License-Identifier: Apache-2.0
#include "stoker/io/loggers/mlflow.h"

#include <cctype>
#include <cstdlib>
#include <variant>

#include "stoker/base/file.h"
#include "stoker/base/fmt.h"
#include "stoker/base/utc.h"
#include "stoker/base/version.h"
#include "stoker/io/loggers/mlflow_courier.h"
#include "stoker/io/loggers/step_choice.h"
#include "stoker/io/loggers/step_figures.h"

namespace stoker::io {
namespace {

namespace fs = std::filesystem;
using namespace core;

constexpr double kMachineEach = 10;  // seconds between figures of the machine
constexpr std::string_view kSpecial = "_-. /";

// MLflow takes letters, digits and a few other characters.
std::string mlflow_key(const std::string& name) {
  std::string key = printable(name);
  for (char& c : key) {
    const auto byte = static_cast<unsigned char>(c);
    const bool fits = byte >= 0x80 || std::isalnum(byte) != 0 || kSpecial.find(c) != kSpecial.npos;
    c = fits ? c : '_';
  }
  return key;
}

std::string experiment_name() {
  const char* const name = std::getenv("MLFLOW_EXPERIMENT_NAME");
  return name != nullptr && *name != '\0' ? name : "stoker";
}

// The value that a float is written as: 0.1, not 0.10000000149011612.
double shortest(double value) { return value; }
double shortest(float value) { return std::strtod(fmt::format("{}", value).c_str(), nullptr); }

std::string status_of(const std::string& outcome) {
  return outcome == "failed" ? "FAILED" : outcome == "stopped" ? "KILLED" : "FINISHED";
}

}  // namespace

struct MlflowLog::State {
  State(const fs::path& folder, const std::string& address, EventEmitter& findings)
      : run(folder), courier(folder, address, findings) {}

  void on(const RunStarted& event);
  void on(const StepFinished& event);
  void on(const Evaluated& event);
  void on(const Monitored& event);
  void on(const Anatomy& event);
  void on(const Finding& event) { remarks += (remarks.empty() ? "" : "; ") + event.text; }
  void on(const RunFinished& event);
  template <typename Other>
  void on(const Other&) {}  // MLflow has no place for it

  void point(const std::string& name, double value, std::int64_t step) {
    courier.add({mlflow_key(name), value, unix_ms(), step});
  }

  fs::path run;
  bool started = false;
  MlflowCourier courier;
  StepFigures figures;
  StepChoice choice;
  double machine_time = -kMachineEach;  // of the newest figures of the machine, seconds since 1970
  std::string remarks;                  // findings so far
};

void MlflowLog::State::on(const RunStarted& event) {
  figures = StepFigures(event.scalars);
  choice = StepChoice(event.first_step, event.last_step);
  MlflowRun description;
  description.experiment = experiment_name();
  description.name = run.filename().native();
  description.start = unix_ms();
  description.tags = {{"mlflow.source.name", fmt::format("stoker {}", kVersion)},
                      {"mlflow.source.type", "LOCAL"},
                      {"mlflow.note.content", event.title},
                      {"stoker.folder", event.folder}};
  for (const PlanRow& row : event.plan) {
    description.parameters.emplace_back(mlflow_key(row.key), row.value);
  }
  courier.begin(std::move(description));
}

void MlflowLog::State::on(const StepFinished& event) {
  figures.add(event);
  if (choice.take(event.step)) {
    for (const auto& [key, value] : figures.take(event)) {
      point(key, std::visit([](auto each) { return shortest(each); }, value), event.step);
    }
  }
}

void MlflowLog::State::on(const Evaluated& event) {
  for (const MetricValue& metric : event.metrics) {
    point(event.split + '/' + metric.name, metric.value, event.step);
  }
}

void MlflowLog::State::on(const Monitored& event) {
  if (event.time - machine_time < kMachineEach) {
    return;
  }
  machine_time = event.time;
  for (const Figure& figure : event.figures) {
    point("system/" + figure.name, figure.value, event.step);
  }
}

void MlflowLog::State::on(const Anatomy& event) {
  for (const auto& [key, share] : phase_shares(event)) {
    point(key, share, event.step);
  }
}

void MlflowLog::State::on(const RunFinished& event) {
  courier.finish(status_of(event.outcome),
                 {{"stoker.outcome", event.outcome + ' ' + event.text}, {"stoker.findings", remarks}});
}

MlflowLog::MlflowLog(const fs::path& run_folder, const std::string& address, EventEmitter& findings)
    : state_(std::make_unique<State>(run_folder, address, findings)) {}
MlflowLog::~MlflowLog() = default;

void MlflowLog::on(const Event& event) {
  state_->started = state_->started || std::holds_alternative<RunStarted>(event);
  if (state_->started) {
    std::visit([this](const auto& each) { state_->on(each); }, event);
    state_->courier.deliver_when_due(/*quiet=*/false);
  }
}

void MlflowLog::flush() {
  if (state_->started) {
    state_->courier.deliver_when_due(/*quiet=*/true);
  }
}

}  // namespace stoker::io
