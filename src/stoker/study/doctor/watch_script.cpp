// SPDX-License-Identifier: Apache-2.0
#include "stoker/study/doctor/watch_script.h"

#include <csignal>
#include <set>

#include "stoker/base/clock.h"
#include "stoker/base/error.h"
#include "stoker/base/file.h"
#include "stoker/base/fmt.h"
#include "stoker/observe/script/shim.h"
#include "stoker/study/doctor/report.h"
#include "stoker/study/doctor/scratch.h"
#include "stoker/study/doctor/script_child.h"
#include "stoker/study/doctor/script_monitor.h"

namespace stoker::study {

using namespace observe::doctor;

namespace {

constexpr double kFirstVerdict = 25;   // seconds of training after which the first verdict is due
constexpr double kLatestVerdict = 50;  // seconds: with steps that are so slow, fewer must do
constexpr std::int64_t kStepsOfVerdict = 20;

// The folder for the script's records: a new one of the user's, or one that goes at the end.
std::filesystem::path records_folder(const std::filesystem::path& keep, const Scratch& scratch) {
  const std::filesystem::path records = keep.empty() ? scratch.path() / "records" : std::filesystem::absolute(keep);
  std::error_code error;
  if (std::filesystem::exists(records, error)) {
    fail<ConfigError>("stoker.doctor", "{}: exists; give a new folder for the records", printable(keep.native()));
  }
  if (!std::filesystem::create_directories(records, error)) {
    fail<IoError>("stoker.doctor", "{}: cannot be made: {}", printable(records.native()), error.message());
  }
  return records;
}

std::string ending(int code) {
  if (code == 0) {
    return "";
  }
  if (code > 128) {
    const char* name = ::sigabbrev_np(code - 128);
    return fmt::format("The script was ended by signal {}{}.\n", code - 128,
                       name == nullptr ? "" : fmt::format(" (SIG{})", name));
  }
  return fmt::format("The script ended with code {}.\n", code);
}

// Says verdicts.
class Speaker {
 public:
  Speaker(const WatchScriptOptions& options, std::filesystem::path records)
      : options_(options), records_(std::move(records)) {}

  // While the script runs. False: too early.
  bool early(double seconds_of_training) {
    const Examined examined = study::examine_path(records_);
    const auto steps = examined.facts.steps();
    if (steps < kStepsOfVerdict && seconds_of_training < kLatestVerdict) {
      return false;
    }
    say(options_.json ? diagnosis_json(examined)
                      : fmt::format("after {} steps: {}", steps, printable(examined.diagnosis.verdict)));
    return true;
  }

  // What processes of the script want to be said at once: a file tell-PID.txt of each.
  void told() {
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(records_, error)) {
      const std::filesystem::path file = entry.path();
      if (file.extension() == ".txt" && file.filename().native().starts_with("tell-")) {
        const std::string text = printable(read_text(file));
        std::filesystem::remove(file);
        if (!options_.json) {
          say(text);
        }
      }
    }
  }

  void last(int code) {
    const Examined examined = study::examine_path(records_);
    so_far_.clear();
    say(options_.json ? diagnosis_json(examined) : ending(code) + diagnosis_text(examined));
    options_.at_end(examined);
  }

  // Runs what looks at the records. What goes wrong there is said, once, and does not end the watch: the script's exit
  // code must reach the caller.
  template <typename Work>
  void carefully(const Work& work) {
    try {
      work();
    } catch (const std::exception& error) {
      if (troubles_.insert(error.what()).second) {
        options_.say(fmt::format("stoker doctor: {}\n", error.what()));
      }
    }
  }

 private:
  void say(const std::string& told) {
    const std::string text = told.ends_with('\n') ? told : told + "\n";
    if (options_.out.empty()) {
      options_.say((options_.json ? "" : "stoker doctor: ") + text);
    } else {
      so_far_ = options_.json ? text : so_far_ + text;  // the file holds one JSON, or all texts
      write_file_atomically(options_.out, so_far_);
    }
  }

  const WatchScriptOptions& options_;
  std::filesystem::path records_;
  std::string so_far_;  // what the file of verdicts holds
  std::set<std::string> troubles_;
};

}  // namespace

int watch_script(const WatchScriptOptions& options) {
  const Scratch scratch;
  const std::filesystem::path records = records_folder(options.keep, scratch), shim = scratch.path() / "shim";
  observe::script::write_shim(shim);
  ScriptMonitor monitor(records);
  Speaker speaker(options, records);
  ScriptChild child(options.command, observe::script::with_shim(own_environment(), shim, records));
  bool spoken = false;
  double first_step = 0, next_look = 0, next_told = 0;
  std::optional<int> code;
  while (!(code = child.wait(observe::kTickSeconds))) {
    speaker.carefully([&] {
      monitor.tick();
      if (now_s() > next_told) {
        next_told = now_s() + 1;
        speaker.told();
      }
    });
    if (monitor.trainer() != 0 && first_step == 0) {
      first_step = now_s();
      next_look = first_step + kFirstVerdict;
    }
    if (!spoken && first_step > 0 && now_s() > next_look) {
      next_look = now_s() + 5;
      speaker.carefully([&] { spoken = speaker.early(now_s() - first_step); });
    }
  }
  speaker.carefully([&] { speaker.last(*code); });
  return *code;
}

}  // namespace stoker::study
