// SPDX-License-Identifier: Apache-2.0
// stoker train: from a folder of pictures to a run folder.
#include <memory>

#include "commands.h"
#include "stoker/job/process.h"
#include "training_command.h"

namespace stoker::app {

void add_train(CLI::App& app, int& exit_code) {
  const auto words = std::make_shared<TrainingWords>();
  CLI::App* command = app.add_subcommand("train", "Train on a folder of pictures, with no config at all");
  command->add_option("DIR", words->path,
                      "class folders, train/val/test folders, tar shards, or labels.csv with pictures");
  add_settings(*command, *words);
  add_silence(*command, *words);
  command->callback([words, &exit_code] {
    survive_closed_pipes();
    end_on_signal();
    const job::Request request = request_of(*words);
    job::start_process();
    exit_code = run_job(job::Job::prepare(request, say_unless(words->silent())), *words);
  });
}

}  // namespace stoker::app
