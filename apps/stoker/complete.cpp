// SPDX-License-Identifier: Apache-2.0
// stoker __complete: the words that shell completion asks for.
#include <cstdio>
#include <memory>

#include "commands.h"
#include "stoker/base/fmt.h"
#include "stoker/job/completion.h"

namespace stoker::app {

void add_complete(CLI::App& app, int& exit_code) {
  const auto words = std::make_shared<std::vector<std::string>>();
  CLI::App* command = app.add_subcommand("__complete", "Candidates for shell completion, one a line");
  command->group("");  // not shown in the help
  command->add_option("WORDS", *words, "the words so far, the last one being completed");
  command->callback([words, &app, &exit_code] {
    std::vector<std::string> commands;
    for (const CLI::App* each : app.get_subcommands([](const CLI::App*) { return true; })) {
      if (!each->get_group().empty()) {
        commands.push_back(each->get_name());
      }
    }
    for (const std::string& candidate : job::complete(commands, *words)) {
      fmt::print("{}\n", candidate);
    }
    exit_code = kDone;
  });
}

}  // namespace stoker::app
