// SPDX-License-Identifier: Apache-2.0
// stoker train: trains on images, a table or a text and writes a run folder.
#include <memory>
#include <utility>

#include "commands.h"
#include "stoker/job/process.h"
#include "stoker/job/ranks.h"
#include "training_command.h"

namespace stoker::app {

void add_train(CLI::App& app, int& exit_code) {
  const auto words = std::make_shared<TrainingWords>();
  CLI::App* command = app.add_subcommand("train", "Train on a folder of images, a table or a text; no config needed");
  command->add_option("DATA", words->path,
                      "images (class folders, train/val/test folders, tar shards, labels.csv),\n"
                      "a table (.csv, with target=COLUMN), a text or a folder of texts");
  add_options(*command, *words);
  add_silence(*command, *words);
  command->callback([words, &exit_code] {
    survive_closed_pipes();
    end_on_signal("stopped before the first step; nothing was changed", /*code=*/130);
    job::Request request = request_of(*words);
    job::start_process();
    const job::Ranks ranks(request, to_stderr());
    take_part(*words, ranks);
    job::Job job = job::Job::prepare_or_resume(request, say_unless(words->silent()));
    const bool is_new = job.run_path().empty();
    exit_code = run_job(std::move(job), *words, is_new);
  });
}

}  // namespace stoker::app
