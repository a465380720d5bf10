// SPDX-License-Identifier: Apache-2.0
#include "stoker/io/loggers/tensorboard.h"

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <system_error>

#include "stoker/base/error.h"
#include "stoker/base/utc.h"
#include "stoker/io/loggers/shown_artifact.h"
#include "stoker/io/loggers/step_choice.h"
#include "stoker/io/loggers/step_figures.h"
#include "stoker/io/loggers/tensorboard_messages.h"
#include "stoker/io/loggers/tfrecord.h"

namespace stoker::io {
namespace {

namespace fs = std::filesystem;
using namespace core;

constexpr std::size_t kMostFaults = 1000;  // written individually
constexpr std::string_view kPrefix = "events.out.tfevents.";

// TensorBoard reads files in the order of their names: a new file sorts last, even if the clock went back.
fs::path next_file(const fs::path& folder) {
  std::error_code error;
  if (!fs::is_directory(folder, error)) {
    fs::create_directory(folder, error);
  }
  std::string last;
  int files = 0;
  if (!error) {
    for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
      if (const std::string name = entry->path().filename().native(); name.starts_with(kPrefix)) {
        last = std::max(last, name);
        ++files;
      }
    }
  }
  if (error) {
    fail<IoError>("io.tensorboard", "{}: the folder for TensorBoard cannot be created or read: {}",
                  printable(folder.native()), error.message());
  }
  const auto name_at = [&](long long seconds) { return fmt::format("{}{:010}.{:04}.stoker", kPrefix, seconds, files); };
  auto seconds = static_cast<long long>(unix_s());
  if (name_at(seconds) <= last) {
    seconds = std::strtoll(last.c_str() + kPrefix.size(), nullptr, 10) + 1;
  }
  return folder / name_at(seconds);
}

}  // namespace

struct TensorBoardLog::State {
  explicit State(const fs::path& folder) : run(folder) {}

  void write(const Summary& summary, std::int64_t at) { file->add(summary_event(unix_s(), at, summary)); }
  void note(std::string_view tag, const std::string& text, std::int64_t at) {
    Summary summary;
    summary.text(tag, text);
    write(summary, at);
  }

  void on(const RunStarted& event);
  void on(const StepFinished& event);
  void on(const Fed&) {}  // waiting is drawn per step
  void on(const Evaluating&) {}
  void on(const Monitored&) {}
  void on(const Anatomy&) {}
  void on(const RankTimes&) {}
  void on(const SlowStep&) {}
  void on(const Evaluated& event);
  void on(const CheckpointSaved&) {}
  void on(const FaultSurvived& event);
  void on(const Finding& event);
  void on(const Artifact& event);
  void on(const WeightHistograms& event);
  void on(const RunFinished& event);

  fs::path run;
  std::optional<RecordFile> file;
  std::vector<PlanRow> plan;
  StepFigures figures;
  StepChoice choice;
  std::int64_t step = 0;  // the newest
  bool has_experiment = false;
  std::string findings;  // so far, a Markdown list
  std::string faults;    // of the step fault_step
  std::int64_t fault_step = -1;
  std::size_t fault_count = 0;
};

void TensorBoardLog::State::on(const RunStarted& event) {
  plan = event.plan;
  figures = StepFigures(event.scalars);
  choice = StepChoice(event.first_step, event.last_step);
  step = event.first_step;
  file->add(session_start_event(unix_s(), event.first_step + 1));
  Summary summary;
  summary.session_started(plan, unix_s());
  summary.text("notes/title", markdown(printable(event.title)));
  write(summary, step);
}

void TensorBoardLog::State::on(const StepFinished& event) {
  step = event.step;
  figures.add(event);
  if (!choice.take(step)) {
    return;
  }
  Summary summary;
  for (const auto& [tag, value] : figures.take(event)) {
    summary.scalar(tag, std::visit([](auto each) { return static_cast<float>(each); }, value));
  }
  write(summary, step);
}

void TensorBoardLog::State::on(const Evaluated& event) {
  Summary summary;
  std::vector<std::string> metrics;
  for (const MetricValue& metric : event.metrics) {
    metrics.push_back(printable(event.split + '/' + metric.name));
    summary.scalar(metrics.back(), static_cast<float>(metric.value));
  }
  if (event.split == "val" && !std::exchange(has_experiment, true)) {  // the first metric selects the best
    summary.experiment(plan, metrics, unix_s());
  }
  write(summary, event.step);
}

void TensorBoardLog::State::on(const FaultSurvived& event) {
  if (++fault_count > kMostFaults) {
    return;
  }
  if (event.step != fault_step) {  // a second value for one step would replace the first
    faults.clear();
    fault_step = event.step;
  }
  faults += "- " + markdown(printable(event.text)) + '\n';
  if (fault_count == kMostFaults) {
    faults += "- further ones are in metrics.jsonl\n";
  }
  note("notes/faults", faults, event.step);
}

void TensorBoardLog::State::on(const Finding& event) {
  findings += "- " + markdown(printable(event.text)) + '\n';
  note("notes/findings", findings, step);
}

void TensorBoardLog::State::on(const Artifact& event) {
  try {
    const ShownArtifact shown = read_artifact(run / event.path, event.name);
    Summary summary;
    if (!shown.images.empty()) {
      summary.images(shown.title, shown.images);
    }
    if (!shown.captions.empty()) {
      summary.text(shown.title + "/captions", shown.captions);
    }
    if (!shown.text.empty()) {
      summary.text(shown.title, shown.text);
    }
    if (!summary.bytes().empty()) {
      write(summary, event.step);
    }
  } catch (const DataError& error) {  // replaced or removed in the meantime: the log reports it and continues
    on(Finding{error.what()});
  }
}

void TensorBoardLog::State::on(const WeightHistograms& event) {
  Summary summary;
  for (const Histogram& each : event.weights) {
    summary.histogram("weights/" + printable(each.name), each);
  }
  write(summary, event.step);
}

void TensorBoardLog::State::on(const RunFinished& event) {
  Summary summary;
  summary.text("notes/outcome", markdown(printable(event.outcome + ' ' + event.text)));
  if (event.outcome != "stopped" && event.outcome != "failed") {  // TensorBoard keeps the end of a session for good,
    summary.session_succeeded(unix_s());                          // and these may be resumed
  }
  write(summary, event.step);
}

TensorBoardLog::TensorBoardLog(const fs::path& run_folder) : state_(std::make_unique<State>(run_folder)) {}

TensorBoardLog::~TensorBoardLog() = default;

void TensorBoardLog::on(const Event& event) {
  if (!state_->file) {
    state_->file.emplace(next_file(state_->run / "tensorboard"));
    state_->file->add(file_version_event(unix_s()));
  }
  std::visit([this](const auto& each) { state_->on(each); }, event);
}

void TensorBoardLog::flush() {
  if (state_->file) {
    state_->file->flush();
  }
}

}  // namespace stoker::io
