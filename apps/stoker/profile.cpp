// SPDX-License-Identifier: Apache-2.0
// stoker profile: which operators the steps of a run, or of a training on some data, spend their time in.
#include "stoker/job/profile.h"

#include <cstdio>
#include <filesystem>
#include <memory>

#include "commands.h"
#include "status_line.h"
#include "stoker/base/error.h"
#include "stoker/base/file.h"
#include "stoker/base/fmt.h"
#include "stoker/job/process.h"
#include "stoker/job/profile_text.h"
#include "stoker/job/run_folder.h"
#include "training_command.h"

namespace stoker::app {

void add_profile(CLI::App& app, int& exit_code) {
  struct Arguments {
    TrainingWords words;
    job::ProfileWish wish;
    std::string trace;
  };
  const auto arguments = std::make_shared<Arguments>();
  CLI::App* command =
      app.add_subcommand("profile", "Record some steps: operators by time, rates, memory; and a trace to look at");
  command->add_option("RUN", arguments->words.path,
                      "a run that trains: its next steps; a run that has ended: steps from its\n"
                      "last checkpoint that are not kept; or data, as for train: its first steps");
  add_options(*command, arguments->words);
  command->add_option("--steps", arguments->wish.steps, "steps to record; default: 20")
      ->type_name("N")
      ->check(in_range<std::int64_t>(1, job::ProfileWish::kMostSteps));
  command
      ->add_option(
          "--out", arguments->trace,
          "file for the trace; default: profile.pt.trace.json.gz here. A run that trains writes it to its own\n"
          "folder")
      ->type_name("FILE");
  command->add_flag("--json", arguments->words.json, "print the record as JSON");
  command->callback([arguments, &exit_code] {
    const TrainingWords& words = arguments->words;
    if (!arguments->trace.empty()) {
      check_target("stoker.profile", arguments->trace);
      arguments->wish.trace = arguments->trace;
    }
    StatusLine line(/*apart=*/10);
    const auto say = [&line](const std::string& text) { line.show(printable(text)); };
    std::string record;
    if (job::RunFolder::is_run(words.path)) {
      if (!words.assignments.empty() || !words.config.empty()) {
        fail<ConfigError>("stoker.profile", "a run is profiled with its own plan; remove {}",
                          words.assignments.empty() ? "--config" : printable(words.assignments.front()));
      }
      job::start_process();
      record = job::profile_run(words.path, arguments->wish, say);
    } else {
      const job::Request request = request_of(words);
      job::start_process();
      record = job::profile_data(request, arguments->wish, say);
    }
    line.hide();
    fmt::print("{}", words.json ? record : job::profile_text(record));
    exit_code = kDone;
  });
}

}  // namespace stoker::app
