// SPDX-License-Identifier: Apache-2.0
#include "training_command.h"

#include <cstdio>
#include <filesystem>

#include "commands.h"
#include "stoker/base/file.h"
#include "stoker/base/fmt.h"
#include "stoker/base/plain_nan.h"
#include "stoker/job/options_text.h"
#include "stoker/job/progress_sink.h"

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

int run_job(job::Job job, const TrainingWords& words) {
  const std::atomic<bool>& stop = stop_on_signal();
  if (!words.silent()) {
    const std::vector<std::string> facts = job.facts();
    for (std::size_t i = 1; i < facts.size(); ++i) {  // the first was printed as soon as it was known
      say(printable(facts[i]));
    }
  }
  std::vector<std::unique_ptr<core::EventSink>> sinks;
  sinks.push_back(job::progress_sink(words.quiet, words.json));
  const job::Outcome outcome = job.train(std::move(sinks), stop);
  const bool stopped = outcome.end == train::LoopEnd::kStopped;
  if (words.json) {
    return stopped ? kStopped : kDone;
  }
  if (stopped) {
    say(fmt::format("stopped at step {}; continue with: stoker resume {}", outcome.step,
                    printable(job.run_path().native())));
    return kStopped;
  }
  if (!outcome.best.empty()) {
    say("best on validation: " + figures(outcome.best));
  }
  if (!outcome.test.empty()) {
    say("on the test split: " + figures(outcome.test));
  }
  say("run folder: " + printable(job.run_path().native()));
  say("report: " + printable((job.run_path() / "report.html").native()));
  return kDone;
}

}  // namespace stoker::app
