// SPDX-License-Identifier: Apache-2.0
// stoker plan: shows what training would do, without training.
#include <cstdio>
#include <memory>
#include <string>

#include "commands.h"
#include "stoker/base/file.h"
#include "stoker/base/fmt.h"
#include "stoker/job/options_text.h"
#include "stoker/job/process.h"
#include "stoker/job/ranks.h"
#include "training_command.h"

namespace stoker::app {

void add_plan(CLI::App& app, int& exit_code) {
  const auto words = std::make_shared<TrainingWords>();
  CLI::App* command = app.add_subcommand("plan", "Show what `train` would do: every value, its origin and its reason");
  command->add_option("DATA", words->path, "data, as for train");
  add_options(*command, *words);
  command->add_flag("--json", words->json, "print the plan as JSON, the format that plan=FILE reads");
  command->callback([words, &exit_code] {
    job::Request request = request_of(*words);
    job::start_process();
    const job::Ranks ranks(request, to_stderr());
    const job::Job job = job::Job::prepare(request, say_unless(true));
    const std::string places = job.places();
    exit_code = kDone;
    if (!ranks.first()) {
      return;
    }
    if (words->json) {
      fmt::print("{}", train::plan_to_json(job.plan()));
    } else {
      fmt::print("{}\n", fmt::join(job.facts(), "\n"));
      for (const std::string& finding : job.findings()) {
        fmt::print("note: {}\n", printable(finding));
      }
      fmt::print("{}{}", job::plan_table(job.plan()), places.empty() ? "" : "who runs where:\n" + places);
    }
  });
}

}  // namespace stoker::app
