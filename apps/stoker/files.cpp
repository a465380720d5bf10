// SPDX-License-Identifier: Apache-2.0
// stoker export, stoker info, and the words that shell completion asks for.
#include <cstdio>
#include <memory>

#include "commands.h"
#include "stoker/base/fmt.h"
#include "stoker/job/console.h"
#include "stoker/job/export.h"

namespace stoker::app {

void add_export(CLI::App& app, int& exit_code) {
  struct Arguments {
    std::string run, out, checkpoint;
  };
  const auto arguments = std::make_shared<Arguments>();
  CLI::App* command = app.add_subcommand("export", "Write the weights as safetensors that Python loads");
  command->add_option("RUN", arguments->run, "run or checkpoint folder")->required();
  command->add_option("FILE", arguments->out, "e.g. weights.safetensors")->required();
  command->add_option("--checkpoint", arguments->checkpoint, "best or last; best if there is one")
      ->check(CLI::IsMember({"best", "last"}));
  command->callback([arguments, &exit_code] {
    fmt::print("{}\n", job::export_weights(arguments->run, arguments->out, arguments->checkpoint));
    exit_code = kDone;
  });
}

void add_info(CLI::App& app, int& exit_code) {
  const auto what = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand("info", "What a run, checkpoint, weights file or data folder holds");
  command->add_option("WHAT", *what, "a path; or `models`, or `machine`")->required();
  command->callback([what, &exit_code] {
    fmt::print("{}", job::info_text(*what));
    exit_code = kDone;
  });
}

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
