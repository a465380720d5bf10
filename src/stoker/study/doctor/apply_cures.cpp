// SPDX-License-Identifier: Apache-2.0
#include "stoker/study/doctor/apply_cures.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <set>
#include <sstream>

#include "stoker/base/counted.h"
#include "stoker/base/error.h"
#include "stoker/base/file.h"
#include "stoker/base/shell_word.h"
#include "stoker/job/run_socket.h"
#include "stoker/job/saved_plan.h"
#include "stoker/job/socket_lines.h"
#include "stoker/study/doctor/apart_child.h"
#include "stoker/study/doctor/scratch.h"
#include "stoker/study/doctor/script_child.h"
#include "stoker/study/doctor/trier.h"

namespace stoker::study {

using namespace observe::doctor;

namespace {

constexpr double kSeconds = 2;        // of a short training with the cure, if it gains what is predicted
constexpr double kMostGain = 5;       // that is counted on
constexpr double kUnknownGain = 2;    // of what nothing predicts
constexpr std::int64_t kFewest = 20;  // steps of it
constexpr double kLimit = 600;        // seconds until it is given up
constexpr std::array<std::string_view, 7> kOfLength = {"epochs", "steps",      "time",          "eval_every",
                                                       "run",    "early_stop", "schedule_steps"};

std::string key_of(std::string_view assignment) { return std::string(assignment.substr(0, assignment.find('='))); }

std::vector<std::string> words_of(const std::string& option) {
  std::istringstream text(option);
  return {std::istream_iterator<std::string>(text), {}};
}

// A training like the run, as long as the trial needs, into a folder that goes.
class ShortTraining {
 public:
  ShortTraining(HeldSignals& signals, const std::filesystem::path& run, std::int64_t steps)
      : signals_(signals),
        config_(std::filesystem::absolute(run) / "config.toml"),
        plan_(job::read_plan(run / "plan.json")),
        steps_(steps) {}

  // Steps per second, without the first period. DataError if it fails.
  [[nodiscard]] double speed(const std::vector<Cure>& changes) const {
    const Scratch scratch;
    const std::filesystem::path folder = scratch.path() / "run", output = scratch.path() / "output";
    ApartChild child(signals_, command(changes, folder), own_environment(), output);
    const std::optional<int> code = child.wait(kLimit);
    child.end();
    if (signals_.came()) {
      throw Stopped{};
    }
    if (code != 0) {
      fail<DataError>("stoker.doctor", "a short training of {} {}: {}", counted(steps_, "step"),
                      code ? "failed" : fmt::format("did not end within {:.0f} s", kLimit),
                      printable(read_text(output)));
    }
    const Facts facts = examine_path(folder).facts;
    if (facts.seconds() <= 0) {
      fail<DataError>("stoker.doctor", "a short training of {} was over too soon to be measured",
                      counted(steps_, "step"));
    }
    return static_cast<double>(facts.steps()) / facts.seconds();
  }

 private:
  // What was measured for the run stays; what a change names is set by it.
  [[nodiscard]] std::vector<std::string> command(const std::vector<Cure>& changes,
                                                 const std::filesystem::path& folder) const {
    std::vector<std::string> words = {std::filesystem::read_symlink("/proc/self/exe").native(),
                                      "train",
                                      "--config",
                                      config_.native(),
                                      "--quiet",
                                      "run=" + folder.native(),
                                      "log=none",
                                      "apply=none",
                                      "time=0",
                                      fmt::format("steps={}", steps_),
                                      fmt::format("eval_every={}", steps_)};
    std::set<std::string> set(kOfLength.begin(), kOfLength.end());
    set.insert({"log", "apply"});
    for (auto change = changes.rbegin(); change != changes.rend(); ++change) {  // the last one has the say
      for (const std::string& word : words_of(change->option)) {
        if (set.insert(key_of(word)).second) {
          words.push_back(word);
        }
      }
    }
    for (const core::PlanRow& row : plan_.rows()) {
      if (row.origin == core::Origin::kMeasured && set.insert(row.key).second) {
        words.push_back(row.key + "=" + row.value);
      }
    }
    return words;
  }

  HeldSignals& signals_;
  std::filesystem::path config_;
  train::Plan plan_;
  std::int64_t steps_;
};

bool goes_on(const std::string& word) { return job::may_change(key_of(word)) && !word.ends_with("=auto"); }

// Each option once: of two values the last one, which was measured beside all others.
std::vector<std::string> kept_words(const Trials& trials) {
  std::vector<std::string> kept;
  for (const Tried& each : trials.tried) {
    for (const std::string& word : each.kept ? words_of(each.cure.option) : std::vector<std::string>()) {
      std::erase_if(kept, [&](const std::string& before) { return key_of(before) == key_of(word); });
      kept.push_back(word);
    }
  }
  return kept;
}

std::int64_t steps_of(const Facts& facts, const std::vector<Cure>& all) {
  double gain = 1;
  for (const Cure& each : all) {
    gain = std::max(gain, each.prediction ? std::min(each.prediction->high, kMostGain) : kUnknownGain);
  }
  const double speed = facts.seconds() > 0 ? static_cast<double>(facts.steps()) / facts.seconds() : 0;
  return std::max(static_cast<std::int64_t>(kSeconds * gain * speed), kFewest);
}

std::string announcement(const ApplyOptions& options, const std::vector<Cure>& all, std::int64_t steps,
                         const Facts& facts) {
  const double seconds =
      facts.steps() > 0 ? static_cast<double>(steps) * facts.seconds() / static_cast<double>(facts.steps()) : 0;
  return all.empty()
             ? ""
             : fmt::format("trying {}, each in up to {} of {}, about {:.0f} s each at this speed; Ctrl-C ends them\n",
                           counted(static_cast<std::int64_t>(all.size()), "change"),
                           counted(2 * options.pairs, "short training"), counted(steps, "step"), seconds);
}

}  // namespace

Trials apply_cures(const ApplyOptions& options) {
  Trials trials{.examined = examine_path(options.run), .tried = {}};
  const Facts& facts = trials.examined.facts;
  if (facts.source != Source::kRun) {
    fail<ConfigError>("stoker.doctor",
                      "{}: is no run of Stoker; for a script write: stoker doctor --try -- python train.py",
                      printable(options.run.native()));
  }
  if (const int socket = job::connect_in(options.run, job::kRunSocket); socket >= 0) {
    ::close(socket);
    fail<ConfigError>("stoker.doctor", "{}: trains; a trial beside it would disturb both. Stop it with Ctrl-C first",
                      printable(options.run.native()));
  }
  options.say(printable(trials.examined.diagnosis.verdict) + "\n");
  HeldSignals signals(options.stop);
  std::vector<Cure> all = cures(trials.examined);
  if (options.resumable) {
    std::erase_if(all, [](const Cure& each) { return !std::ranges::all_of(words_of(each.option), goes_on); });
  }
  const std::int64_t steps = steps_of(facts, all);
  options.say(announcement(options, all, steps, facts));
  const ShortTraining training(signals, options.run, steps);
  Trier trier(
      options.pairs, [&](const std::vector<Cure>& changes) { return training.speed(changes); }, options.say);
  try {
    for (const Cure& each : all) {
      trials.tried.push_back(trier.try_one(each));
    }
  } catch (const Stopped&) {
    trials.stopped = true;
  }
  return trials;
}

std::vector<std::string> kept_changes(const Trials& trials) {
  std::vector<std::string> changes = kept_words(trials);
  std::erase_if(changes, [](const std::string& word) { return !goes_on(word); });
  return changes;
}

std::string next_command(const ApplyOptions& options, const Trials& trials) {
  std::string resumable, others;
  for (const std::string& word : kept_words(trials)) {
    (goes_on(word) ? resumable : others) += " " + word;
  }
  std::string text;
  if (!resumable.empty()) {
    text += fmt::format("stoker resume {}{}\n", printable(shell_word(options.run.native())), resumable);
  }
  if (!others.empty()) {
    text += resumable.empty() ? "" : "or, from the beginning, with all of them:\n";
    text += fmt::format("stoker train --config {}{}{}\n", printable(shell_word((options.run / "config.toml").native())),
                        resumable, others);
  }
  return text;
}

}  // namespace stoker::study
