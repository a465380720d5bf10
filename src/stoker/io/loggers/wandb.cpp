// SPDX-License-Identifier: Apache-2.0
#include "stoker/io/loggers/wandb.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>
#include <optional>
#include <random>
#include <utility>

#include "stoker/base/error.h"
#include "stoker/base/utc.h"
#include "stoker/io/loggers/leveldb_log.h"
#include "stoker/io/loggers/step_choice.h"
#include "stoker/io/loggers/step_figures.h"
#include "stoker/io/loggers/wandb_records.h"

namespace stoker::io {
namespace {

namespace fs = std::filesystem;
using namespace core;

constexpr std::string_view kWhere = "io.wandb", kPrefix = "offline-run-";
constexpr std::size_t kIdLength = 8;

std::string setting(const char* name, const std::string& otherwise) {
  const char* const value = std::getenv(name);
  return value != nullptr && *value != '\0' ? value : otherwise;
}

std::string new_id() {
  constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyz0123456789";
  std::random_device random;
  std::string id;
  while (id.size() < kIdLength) {
    id += kLetters[random() % kLetters.size()];
  }
  return id;
}

// The ID of earlier sessions of the run, if there are any: the end of a folder's name.
std::string id_of(const fs::path& folder) {
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename().native();
    if (const std::size_t dash = name.rfind('-'); name.starts_with(kPrefix) && dash >= kPrefix.size()) {
      return name.substr(dash + 1);
    }
  }
  return new_id();
}

// offline-run-DATE_TIME-ID, as W&B names it. Sessions of one second would have one name.
fs::path new_session(const fs::path& folder, const std::string& id) {
  std::error_code error;
  fs::create_directory(folder, error);
  while (!error) {
    fs::path session = folder / fmt::format("{}{}-{}", kPrefix, utc_now("%Y%m%d_%H%M%S"), id);
    if (fs::create_directory(session, error)) {
      fs::create_directory(session / "files", error);  // `wandb sync` puts the summary there before it sends it
      return session;
    }
    if (!error) {
      ::usleep(100'000);
    }
  }
  fail<IoError>(kWhere, "{}: the folder for Weights & Biases cannot be created: {}", printable(folder.native()),
                error.message());
}

std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

}  // namespace

struct WandbLog::State {
  State(fs::path folder, EventEmitter& emitter) : run(std::move(folder)), findings(emitter) {
    description.project = setting("WANDB_PROJECT", "stoker");
    description.entity = setting("WANDB_ENTITY", "");
    description.name = setting("WANDB_NAME", run.filename().native());
    description.host = host_name();
  }

  void open();
  void on(const RunStarted& event);
  void on(const StepFinished& event);
  void on(const Evaluated& event);
  void on(const Monitored& event);
  void on(const Anatomy& event);
  void on(const RunFinished& event);
  template <typename Other>
  void on(const Other&) {}  // W&B has no place for it

  // A value in the row of a step: W&B takes rows in the order of steps, one per step.
  void put(std::int64_t step, const std::string& key, std::string json) {
    if (step > row_step) {
      end_row();
      row_step = step;
      row = {{"_step", std::to_string(step)},
             {"_timestamp", wandb_json(unix_s())},
             {"_runtime", wandb_json(unix_s() - description.start)}};
    }
    newest.insert_or_assign(key, json);
    row.insert_or_assign(key, std::move(json));
  }
  void end_row() {
    if (!row.empty()) {
      file->add(wandb_history(++number, row_step, {row.begin(), row.end()}));
      row.clear();
    }
  }

  fs::path run;
  EventEmitter& findings;
  WandbRun description;
  std::optional<LevelDbLog> file;
  std::int64_t number = 0;  // of the newest record
  StepFigures figures;
  StepChoice choice;
  std::int64_t row_step = -1;
  std::map<std::string, std::string> row, newest;  // values by key
};

void WandbLog::State::open() {
  const fs::path folder = run / "wandb";
  description.id = id_of(folder);
  const fs::path session = new_session(folder, description.id);
  file.emplace(session / fmt::format("run-{}.wandb", description.id));
  file->add(wandb_header(++number));
  findings.emit(Finding{fmt::format("this run is recorded for Weights & Biases; upload it with: wandb sync {}",
                                    printable(session.native()))});
}

void WandbLog::State::on(const RunStarted& event) {
  open();
  description.notes = event.title;
  description.plan = event.plan;
  description.start = unix_s();
  description.first_step = event.first_step;
  figures = StepFigures(event.scalars);
  choice = StepChoice(event.first_step, event.last_step);
  file->add(wandb_run(++number, description));
}

void WandbLog::State::on(const StepFinished& event) {
  figures.add(event);
  if (choice.take(event.step)) {
    for (const auto& [key, value] : figures.take(event)) {
      put(event.step, key, std::visit([](auto each) { return wandb_json(each); }, value));
    }
  }
}

// The best checkpoint is tested after later steps.
void WandbLog::State::on(const Evaluated& event) {
  for (const MetricValue& metric : event.metrics) {
    put(event.step, printable(event.split + '/' + metric.name), wandb_json(metric.value));
  }
}

void WandbLog::State::on(const Monitored& event) {
  WandbItems items;
  for (const Figure& figure : event.figures) {
    items.emplace_back(printable(figure.name), wandb_json(figure.value));
  }
  file->add(wandb_stats(++number, event.time, items));
}

void WandbLog::State::on(const Anatomy& event) {
  for (const auto& [key, share] : phase_shares(event)) {
    put(event.step, key, wandb_json(share));
  }
}

void WandbLog::State::on(const RunFinished& event) {
  end_row();
  file->add(wandb_summary(++number, {newest.begin(), newest.end()}));
  const bool failed = event.outcome == "failed" || event.outcome == "stopped";
  file->add(wandb_exit(++number, failed ? 1 : 0, unix_s() - description.start));
}

WandbLog::WandbLog(const fs::path& run_folder, EventEmitter& findings)
    : state_(std::make_unique<State>(run_folder, findings)) {}
WandbLog::~WandbLog() = default;

void WandbLog::on(const Event& event) {
  if (state_->file || std::holds_alternative<RunStarted>(event)) {
    std::visit([this](const auto& each) { state_->on(each); }, event);
  }
}

void WandbLog::flush() {
  if (state_->file) {
    state_->file->flush();
  }
}

}  // namespace stoker::io
