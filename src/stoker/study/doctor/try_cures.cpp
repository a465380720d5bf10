// SPDX-License-Identifier: Apache-2.0
#include "stoker/study/doctor/try_cures.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "stoker/base/clock.h"
#include "stoker/base/counted.h"
#include "stoker/base/error.h"
#include "stoker/base/file.h"
#include "stoker/observe/script/shim.h"
#include "stoker/study/doctor/apart_child.h"
#include "stoker/study/doctor/folder_layer.h"
#include "stoker/study/doctor/scratch.h"
#include "stoker/study/doctor/script_child.h"
#include "stoker/study/doctor/script_monitor.h"
#include "stoker/study/doctor/trier.h"

namespace stoker::study {
namespace {

constexpr double kMostSeconds = 60;  // of the measured steps of a run
constexpr double kFirstLimit = 600;  // seconds that the first run may take
constexpr double kLaterLimit = 3;    // times the first run, at least kFewestSeconds
constexpr double kFewestSeconds = 60;
constexpr std::size_t kLastWords = 600;  // bytes of a script that ended too early

// Trackers write into the scratch folder, and nothing is fetched or sent.
std::vector<std::string> quiet_environment(const std::filesystem::path& folder) {
  std::vector<std::string> variables = own_environment();
  const bool disabled = std::ranges::count(variables, "WANDB_MODE=disabled") > 0;
  for (const std::string& each :
       {std::string(disabled ? "WANDB_MODE=disabled" : "WANDB_MODE=offline"), "WANDB_DIR=" + folder.native(),
        std::string("WANDB_SILENT=true"), "MLFLOW_TRACKING_URI=sqlite:///" + (folder / "mlflow.db").native(),
        std::string("HF_HUB_OFFLINE=1"), std::string("TRANSFORMERS_OFFLINE=1"), std::string("HF_DATASETS_OFFLINE=1"),
        std::string("PYTHONUNBUFFERED=1")}) {
    std::erase_if(variables,
                  [&](const std::string& one) { return one.starts_with(each.substr(0, each.find('=') + 1)); });
    variables.push_back(each);
  }
  return variables;
}

std::string last_words(const std::filesystem::path& output) {
  std::string text = read_text(output, std::size_t{1} << 30);
  while (!text.empty() && text.back() == '\n') {
    text.pop_back();
  }
  return printable(text.size() > kLastWords ? text.substr(text.size() - kLastWords) : text);
}

// One short run of the script in a fresh process.
class ShortRun {
 public:
  ShortRun(const TryOptions& options, HeldSignals& signals, const std::vector<Cure>& changes, bool watch)
      : options_(options),
        signals_(signals),
        watch_(watch),
        records_(scratch_.path() / "records"),
        measured_(records_ / "measured.json") {
    std::filesystem::create_directories(records_);
    std::filesystem::create_directories(scratch_.path() / "layer");
    observe::script::write_shim(scratch_.path() / "shim");
    nlohmann::json set = nlohmann::json::array();
    for (const Cure& each : changes) {
      set.push_back({{"option", each.option}, {"where", each.where}});
    }
    trial_ =
        nlohmann::json{{"changes", set}, {"steps", options.steps}, {"seconds", kMostSeconds}, {"watch", watch}}.dump();
  }

  // Until the steps are measured, or the script has ended, or that many seconds are over.
  void run(double limit) {
    std::optional<FolderLayer> layer;
    if (!options_.in_place) {
      layer.emplace(std::filesystem::current_path(), scratch_.path() / "layer");
    }
    std::vector<std::string> environment =
        observe::script::with_shim(quiet_environment(scratch_.path()), scratch_.path() / "shim", records_);
    environment.push_back("STOKER_DOCTOR_TRIAL=" + trial_);
    std::optional<ScriptMonitor> monitor;  // of the run that is examined
    if (watch_) {
      monitor.emplace(records_);
    }
    ApartChild child(signals_, options_.command, environment, scratch_.path() / "output", layer ? &*layer : nullptr);
    const Stopwatch watch;
    while (!(code_ = child.wait(observe::kTickSeconds)) && !std::filesystem::exists(measured_) && !signals_.came() &&
           watch.seconds() < limit) {
      if (monitor) {
        monitor->tick();
      }
    }
    seconds_ = watch.seconds();
    child.end();
    if (signals_.came()) {
      throw Stopped{};
    }
  }

  // Steps per second. DataError, if there are none, with the reason.
  [[nodiscard]] double speed() const {
    if (!std::filesystem::exists(measured_)) {
      const std::string words = last_words(scratch_.path() / "output");
      fail<DataError>(
          "stoker.doctor", "the script {} before {} were measured (after ten to warm up){}{}",
          code_ ? fmt::format("ended with code {}", *code_) : fmt::format("was ended after {:.0f} s", seconds_),
          counted(options_.steps, "step"), words.empty() ? "" : "; its last words: ", words);
    }
    const auto json = nlohmann::json::parse(read_text(measured_));
    if (!json["refused"].empty()) {
      fail<DataError>("stoker.doctor", "{}", printable(json["refused"][0].get<std::string>()));
    }
    return json["steps"].get<double>() / json["seconds"].get<double>();
  }

  [[nodiscard]] Examined examined() const { return examine_path(records_); }

 private:
  const TryOptions& options_;
  HeldSignals& signals_;
  bool watch_;
  Scratch scratch_;
  std::filesystem::path records_, measured_;
  std::string trial_;
  std::optional<int> code_;  // with which it ended by itself
  double seconds_ = 0;
};

Examined look_at(const TryOptions& options, HeldSignals& signals) {
  ShortRun run(options, signals, {}, true);
  run.run(kFirstLimit);
  static_cast<void>(run.speed());  // there must be one
  return run.examined();
}

}  // namespace

std::string plan_of_trials(const TryOptions& options) {
  std::string command;
  for (const std::string& each : options.command) {
    command += (command.empty() ? "" : " ") + printable(each);
  }
  const std::string folder = printable(std::filesystem::current_path().native());
  return fmt::format(
      "This runs `{}`\n"
      "  once as it is, then up to {} for each change that may help, {} each; every run is interrupted after that.\n"
      "  {}\n"
      "  W&B and MLflow work offline unless the script itself names a server, and Hugging Face fetches nothing.\n"
      "  All else is real: servers, GPUs, and files that it reaches by a link out of the folder.\n",
      command, counted(2 * options.pairs, "time"), counted(options.steps, "measured step"),
      options.in_place
          ? fmt::format("What it writes in {} is written for real (--in-place).", folder)
          : fmt::format("What it writes in {} is thrown away; other absolute paths are written for real.", folder));
}

Trials try_cures(const TryOptions& options) {
  const Stopwatch watch;
  HeldSignals signals;
  Trials trials;
  try {
    options.say("looking at the script as it is\n");
    trials.examined = look_at(options, signals);
    options.say(printable(trials.examined.diagnosis.verdict) + "\n");
    const double limit = std::max(kLaterLimit * watch.seconds(), kFewestSeconds);
    const auto speed = [&](const std::vector<Cure>& changes) {
      ShortRun run(options, signals, changes, false);
      run.run(limit);
      return run.speed();
    };
    Trier trier(options.pairs, speed, options.say);
    for (const Cure& each : cures(trials.examined)) {
      trials.tried.push_back(trier.try_one(each));
    }
  } catch (const Stopped&) {
    trials.stopped = true;
  }
  return trials;
}

}  // namespace stoker::study
