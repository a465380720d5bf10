// SPDX-License-Identifier: Apache-2.0
// stoker tune: the largest and the fastest number of samples per forward pass.
#include "stoker/job/tune.h"

#include <cstdio>
#include <memory>

#include "commands.h"
#include "status_line.h"
#include "stoker/base/file.h"
#include "stoker/base/fmt.h"
#include "stoker/job/process.h"
#include "training_command.h"

namespace stoker::app {

void add_tune(CLI::App& app, int& exit_code) {
  const auto words = std::make_shared<TrainingWords>();
  CLI::App* command =
      app.add_subcommand("tune", "Find how many samples fit into memory in one pass, and how many are fastest");
  command->add_option("DATA", words->path, "data, as for train; batch=auto searches the batch, too");
  add_options(*command, *words);
  command->add_flag("--json", words->json, "print the result as JSON");
  command->callback([words, &exit_code] {
    const job::Request request = request_of(*words);
    job::start_process();
    StatusLine line(/*apart=*/10);
    const job::Tuned tuned = job::tune(request, [&line](const std::string& text) { line.show(printable(text)); });
    line.hide();
    fmt::print("{}", words->json ? job::tune_json(tuned) : job::tune_text(tuned));
    exit_code = kDone;
  });
}

}  // namespace stoker::app
