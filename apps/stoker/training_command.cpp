// SPDX-License-Identifier: Apache-2.0
#include "training_command.h"

#include <cstdio>
#include <filesystem>
#include <optional>
#include <sstream>

#include "commands.h"
#include "stoker/base/clock.h"
#include "stoker/base/error.h"
#include "stoker/base/file.h"
#include "stoker/base/fmt.h"
#include "stoker/base/plain_nan.h"
#include "stoker/job/options_text.h"
#include "stoker/job/progress_sink.h"
#include "stoker/study/doctor/apply_cures.h"

namespace stoker::app {
namespace {

// A closed reader (`| head`) does not end the training; main reports at the end that output was lost.
void say(const std::string& line) {
  std::fputs((line + "\n").c_str(), stdout);
  std::fflush(stdout);
}

std::string figures(const std::vector<core::MetricValue>& metrics) {
  std::string text;
  for (const core::MetricValue& metric : metrics) {
    text += fmt::format("{}{} {:.4g}", text.empty() ? "" : ", ", metric.name, plain_nan(metric.value));
  }
  return text;
}

// Ends a training for a look at its first steps, or since a signal came.
class FirstLook final : public core::EventSink {
 public:
  FirstLook(const std::atomic<bool>& stop, std::atomic<bool>& pause) : stop_(stop), pause_(pause) {}

  void on(const core::Event& event) override {
    if (const auto* const step = std::get_if<core::StepFinished>(&event)) {
      watch_ = watch_ ? watch_ : std::optional(Stopwatch());
      if (watch_->seconds() >= kLookSeconds && step->step >= kLookSteps) {
        pause_ = true;
      }
    }
    flush();
  }

  void flush() override {
    if (stop_) {
      pause_ = true;
    }
  }

 private:
  // Three periods of the record, of which the first one does not count, and enough steps to see their spread.
  static constexpr double kLookSeconds = 7;
  static constexpr std::int64_t kLookSteps = 50;
  const std::atomic<bool>& stop_;
  std::atomic<bool>& pause_;
  std::optional<Stopwatch> watch_;
};

struct Trained {
  job::Outcome outcome;
  std::filesystem::path run;
};

Trained train(job::Job& job, const TrainingWords& words, const std::atomic<bool>& stop,
              std::unique_ptr<core::EventSink> another = nullptr) {
  std::vector<std::unique_ptr<core::EventSink>> sinks;
  if (!words.other_rank) {
    sinks.push_back(job::progress_sink(words.quiet, words.json));
  }
  if (another) {
    sinks.push_back(std::move(another));
  }
  job::Outcome outcome = job.train(std::move(sinks), stop);
  return {std::move(outcome), job.run_path()};
}

// What gains in short trainings of the run, as changes to go on with; none if a signal ended them. They need the memory
// of the run's job, so that has ended.
std::optional<std::vector<std::string>> changes_for(const std::filesystem::path& run, const job::Say& tell,
                                                    const std::atomic<bool>& stop) {
  tell("the doctor looks at the first steps; then the training goes on");
  const auto lines = [&](const std::string& text) {
    std::istringstream stream(text);
    for (std::string line; std::getline(stream, line);) {
      tell(line);
    }
  };
  try {
    const study::Trials trials = study::apply_cures({.run = run, .resumable = true, .stop = &stop, .say = lines});
    if (!trials.tried.empty()) {
      lines(study::trials_text(trials.tried));
    }
    return trials.stopped ? std::nullopt : std::optional(study::kept_changes(trials));
  } catch (const Error& error) {  // the training can go on as it was
    std::fputs(fmt::format("stoker: apply=doctor tried nothing: {}\n", printable(error.what())).c_str(), stderr);
    return std::vector<std::string>();
  }
}

Trained train_with_doctor(std::optional<job::Job> job, const TrainingWords& words, const std::atomic<bool>& stop) {
  std::atomic<bool> pause{false};
  Trained trained = train(*job, words, pause, std::make_unique<FirstLook>(stop, pause));
  if (trained.outcome.end != train::LoopEnd::kStopped || stop) {
    return trained;
  }
  job.reset();
  const job::Say tell = say_unless(words.silent());
  const std::optional<std::vector<std::string>> changes = changes_for(trained.run, tell, stop);
  if (!changes || stop) {
    return trained;
  }
  job::Job rest = job::Job::resume(trained.run, *changes, tell);
  return train(rest, words, stop);
}

}  // namespace

void add_options(CLI::App& command, TrainingWords& words) {
  command.add_option(kOptions, words.assignments, "options, see below");
  command.add_option("--config", words.config, "TOML file with the same keys; the command line overrides it")
      ->type_name("FILE");
  command.footer(job::options_help());
}

void add_silence(CLI::App& command, TrainingWords& words) {
  command.add_flag("--quiet", words.quiet, "print only errors, the result, and findings about the data and the run");
  command.add_flag("--json", words.json, "print every event as one JSON object per line");
}

job::Request request_of(const TrainingWords& words) {
  std::vector<std::string> assignments = words.assignments;
  std::string data = words.path;
  if (std::error_code error; data.find('=') != std::string::npos && !std::filesystem::exists(data, error)) {
    assignments.insert(assignments.begin(), data);
    data.clear();
  }
  if (!data.empty()) {  // as a key=value, so that a second data= is detected
    assignments.push_back("data=" + data);
  }
  job::check_given_once(assignments);
  return job::make_request(words.config, assignments);
}

job::Say say_unless(bool silent) {
  return [silent](const std::string& text) {
    if (!silent) {
      say(printable(text));
    }
  };
}

job::Say to_stderr() {
  return [](const std::string& text) { fmt::print(stderr, "stoker: {}\n", printable(text)); };
}

void take_part(TrainingWords& words, const job::Ranks& ranks) {
  words.other_rank = !ranks.first();
  words.stopped = ranks.started_again() ? kDone : kStopped;
}

int run_job(job::Job job, const TrainingWords& words, bool is_new) {
  const std::atomic<bool>& stop = words.other_rank ? stop_on_signal("") : stop_on_signal();
  if (!words.silent()) {
    const std::vector<std::string> facts = job.facts();
    for (std::size_t i = 1; i < facts.size(); ++i) {  // the first was printed as soon as it was known
      say(printable(facts[i]));
    }
  }
  const auto [outcome, run] =
      is_new && job.plan().apply == "doctor" ? train_with_doctor(std::move(job), words, stop) : train(job, words, stop);
  const bool stopped = outcome.end == train::LoopEnd::kStopped;
  const int stopped_code = outcome.ranks_in_trouble ? kStopped : words.stopped;
  if (words.json || words.other_rank) {
    return stopped ? stopped_code : kDone;
  }
  if (stopped) {
    say(fmt::format("stopped at step {}; continue with: stoker resume {}", outcome.step, printable(run.native())));
    return stopped_code;
  }
  if (!outcome.best.empty()) {
    say("best on validation: " + figures(outcome.best));
  }
  if (!outcome.test.empty()) {
    say("on the test split: " + figures(outcome.test));
  }
  say("run folder: " + printable(run.native()));
  say("report: " + printable((run / "report.html").native()));
  return kDone;
}

}  // namespace stoker::app
