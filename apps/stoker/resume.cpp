// SPDX-License-Identifier: Apache-2.0
// stoker resume: continues a run from its last checkpoint.
#include <memory>

#include "commands.h"
#include "stoker/job/process.h"
#include "stoker/job/ranks.h"
#include "training_command.h"

namespace stoker::app {

void add_resume(CLI::App& app, int& exit_code) {
  const auto words = std::make_shared<TrainingWords>();
  CLI::App* command = app.add_subcommand("resume", "Continue a run from its last checkpoint, at the exact step");
  command->add_option("RUN", words->path, "run folder")->required();
  command->add_option(kOptions, words->assignments,
                      "options to change: epochs=, steps=, time=, eval_every=, save_every=, early_stop=, "
                      "schedule_steps=, threads=, ranks=, rank_timeout=, pipeline=, pipeline_cut=");
  add_silence(*command, *words);
  command->callback([words, &exit_code] {
    survive_closed_pipes();
    end_on_signal("stopped before the run continued; it can still be resumed", kStopped);
    job::check_given_once(words->assignments);
    job::start_process();
    const job::Ranks ranks(words->path, words->assignments, to_stderr());
    take_part(*words, ranks);
    exit_code = run_job(
        job::Job::resume(words->path, words->assignments, say_unless(words->silent()), ranks.communicator()), *words,
        /*is_new=*/false);
  });
}

}  // namespace stoker::app
