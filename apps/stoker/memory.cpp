// SPDX-License-Identifier: Apache-2.0
// stoker memory: shows what held the memory of a run.
#include <cstdio>
#include <memory>

#include "commands.h"
#include "stoker/base/fmt.h"
#include "stoker/job/memory_text.h"

namespace stoker::app {

void add_memory(CLI::App& app, int& exit_code) {
  struct Arguments {
    std::string run;
    bool json = false;
  };
  const auto arguments = std::make_shared<Arguments>();
  CLI::App* command = app.add_subcommand("memory", "Show what a run's memory held: peak by category, stages, leaks");
  command->add_option("RUN", arguments->run, "a run folder")->required();
  command->add_flag("--json", arguments->json, "print the record as JSON");
  command->callback([arguments, &exit_code] {
    fmt::print("{}", arguments->json ? job::memory_as_json(arguments->run) : job::memory_text(arguments->run));
    exit_code = kDone;
  });
}

}  // namespace stoker::app
