// SPDX-License-Identifier: Apache-2.0
// stoker export: weights as a file of their own.
#include "stoker/job/export.h"

#include <cstdio>
#include <memory>

#include "commands.h"
#include "stoker/base/fmt.h"

namespace stoker::app {

void add_export(CLI::App& app, int& exit_code) {
  struct Arguments {
    std::string run, out, checkpoint;
  };
  const auto arguments = std::make_shared<Arguments>();
  CLI::App* command = app.add_subcommand("export", "Write the weights as safetensors that Python loads");
  command->add_option("RUN", arguments->run, "run or checkpoint folder")->required();
  command
      ->add_option("FILE", arguments->out,
                   "e.g. weights.safetensors; a folder gets model.safetensors, of a language model also config.json")
      ->required();
  command->add_option("--checkpoint", arguments->checkpoint, "best or last; best if there is one")
      ->check(CLI::IsMember({"best", "last"}));
  command->callback([arguments, &exit_code] {
    fmt::print("{}\n", job::export_weights(arguments->run, arguments->out, arguments->checkpoint));
    exit_code = kDone;
  });
}

}  // namespace stoker::app
