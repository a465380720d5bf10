// SPDX-License-Identifier: Apache-2.0
// stoker export: writes the weights as a separate file.
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
  CLI::App* command = app.add_subcommand("export", "Write the weights as a safetensors file that Python can load");
  command->add_option("RUN", arguments->run, "run or checkpoint folder")->required();
  command
      ->add_option("FILE", arguments->out,
                   "e.g. weights.safetensors; into a folder: model.safetensors, for a language model also config.json")
      ->required();
  command->add_option("--checkpoint", arguments->checkpoint, "best or last; default: best if it exists")
      ->check(CLI::IsMember({"best", "last"}));
  command->callback([arguments, &exit_code] {
    fmt::print("{}\n", job::export_weights(arguments->run, arguments->out, arguments->checkpoint));
    exit_code = kDone;
  });
}

}  // namespace stoker::app
