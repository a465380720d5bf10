// SPDX-License-Identifier: Apache-2.0
// stoker train, stoker plan, stoker resume: make a job, show what was found and decided, run it.
#include <cmath>
#include <cstdio>
#include <memory>

#include "commands.h"
#include "stoker/base/error.h"
#include "stoker/base/file.h"
#include "stoker/job/console.h"
#include "stoker/job/job.h"

namespace stoker::app {
namespace {

struct Arguments {
  std::string path;
  std::vector<std::string> assignments;
  std::string config;
  bool quiet = false, json = false;
};

// A first word without '=' is the data; the other words are settings.
job::Request request_of(const Arguments& arguments) {
  std::vector<std::string> words = arguments.assignments;
  std::string data = arguments.path;
  if (data.find('=') != std::string::npos && !job::exists(data)) {
    words.insert(words.begin(), data);
    data.clear();
  }
  job::Request request = job::make_request(arguments.config, words);
  if (!data.empty()) {
    request.data = data;
  }
  return request;
}

job::Job::Say say_unless(bool silent) {
  return [silent](const std::string& text) {
    if (!silent) {
      fmt::print("{}\n", text);
      std::fflush(stdout);
    }
  };
}

std::string figures(const std::vector<core::MetricValue>& metrics) {
  std::string text;
  for (const core::MetricValue& metric : metrics) {
    text += fmt::format("{}{} {:.4g}", text.empty() ? "" : ", ", metric.name, metric.value);
  }
  return text;
}

int run(job::Job job, const Arguments& arguments) {
  const bool silent = arguments.quiet || arguments.json;
  const std::atomic<bool>& stop = stop_on_signal();
  if (!silent) {
    for (const std::string& line : job.facts()) {
      fmt::print("{}\n", printable(line));
    }
    std::fflush(stdout);
  }
  std::vector<std::unique_ptr<core::EventSink>> sinks;
  sinks.push_back(job::console_sink(arguments.quiet, arguments.json));
  const job::Outcome outcome = job.train(std::move(sinks), stop);
  if (outcome.end == train::LoopEnd::kStopped) {
    if (!arguments.json) {
      fmt::print("stopped at step {}; go on with: stoker resume {}\n", outcome.step,
                 printable(job.run_path().native()));
    }
    return kStopped;
  }
  if (!arguments.json) {
    if (!outcome.best.empty()) {
      fmt::print("best on validation: {}\n", figures(outcome.best));
    }
    if (!outcome.test.empty()) {
      fmt::print("on the test split: {}\n", figures(outcome.test));
    }
    fmt::print("run folder: {}\n", printable(job.run_path().native()));
  }
  return kDone;
}

void add_common(CLI::App& command, Arguments& arguments) {
  command.add_option("settings", arguments.assignments, "key=value ...");
  command.add_option("--config", arguments.config, "TOML file with the same keys; words on the command line win");
  command.footer(job::settings_help());
}

void add_silence(CLI::App& command, Arguments& arguments) {
  command.add_flag("--quiet", arguments.quiet, "only findings, faults and the end");
  command.add_flag("--json", arguments.json, "every event as a JSON object a line");
}

}  // namespace

void add_train(CLI::App& app, int& exit_code) {
  const auto arguments = std::make_shared<Arguments>();
  CLI::App* command = app.add_subcommand("train", "Train on a folder of pictures, with no config at all");
  command->add_option("DIR", arguments->path,
                      "class folders, train/val/test folders, tar shards, or labels.csv with pictures");
  add_common(*command, *arguments);
  add_silence(*command, *arguments);
  command->callback([arguments, &exit_code] {
    const bool silent = arguments->quiet || arguments->json;
    exit_code = run(job::Job::prepare(request_of(*arguments), say_unless(silent)), *arguments);
  });
}

void add_plan(CLI::App& app, int& exit_code) {
  const auto arguments = std::make_shared<Arguments>();
  CLI::App* command =
      app.add_subcommand("plan", "Show what `train` would do: every value, where it comes from, and why");
  command->add_option("DIR", arguments->path, "as for train");
  add_common(*command, *arguments);
  command->add_flag("--json", arguments->json, "as the plan.json that plan=FILE repeats");
  command->callback([arguments, &exit_code] {
    const job::Job job = job::Job::prepare(request_of(*arguments), say_unless(true));
    if (arguments->json) {
      fmt::print("{}", train::plan_to_json(job.plan()));
    } else {
      fmt::print("{}\n", fmt::join(job.facts(), "\n"));
      for (const std::string& finding : job.findings()) {
        fmt::print("note: {}\n", printable(finding));
      }
      fmt::print("{}", job::plan_table(job.plan()));
    }
    exit_code = kDone;
  });
}

void add_resume(CLI::App& app, int& exit_code) {
  const auto arguments = std::make_shared<Arguments>();
  CLI::App* command = app.add_subcommand("resume", "Go on with a run from its last checkpoint, at the exact step");
  command->add_option("RUN", arguments->path, "run folder")->required();
  command->add_option("settings", arguments->assignments,
                      "epochs=, steps=, time=, save_every= or early_stop= to change");
  add_silence(*command, *arguments);
  command->callback([arguments, &exit_code] {
    const bool silent = arguments->quiet || arguments->json;
    exit_code = run(job::Job::resume(arguments->path, arguments->assignments, say_unless(silent)), *arguments);
  });
}

}  // namespace stoker::app
