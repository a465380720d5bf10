// SPDX-License-Identifier: Apache-2.0
// stoker info: shows the content of a run, a checkpoint, weights or data.
#include "stoker/job/info.h"

#include <cstdio>
#include <memory>

#include "commands.h"
#include "stoker/base/fmt.h"
#include "stoker/job/process.h"

namespace stoker::app {

void add_info(CLI::App& app, int& exit_code) {
  const auto what = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand("info", "Show what a run, checkpoint, weights file or data folder contains");
  command->add_option("WHAT", *what, "a path, or `tasks`, `models` or `machine`")->required();
  command->callback([what, &exit_code] {
    if (*what == "machine") {  // everything else is read from files
      job::start_process();
    }
    fmt::print("{}", job::info_text(*what));
    exit_code = kDone;
  });
}

}  // namespace stoker::app
