// SPDX-License-Identifier: Apache-2.0
#include "stoker/job/resumption.h"

#include "stoker/base/error.h"
#include "stoker/base/file.h"
#include "stoker/job/model_card.h"
#include "stoker/train/resolve.h"

namespace stoker::job {

namespace fs = std::filesystem;

io::Checkpoint load_last(const RunFolder& run) {
  const io::CheckpointStore store(run.checkpoints());
  const std::string name = printable(run.path().native());
  const std::string from_best =
      store.has("best") ? fmt::format("; `stoker train DATA weights={}` starts a new run from its best checkpoint", name)
                        : "";
  if (!store.has("last")) {
    fail<CheckpointError>("job",
                          "{}: has no checkpoint to resume from: the run ended before the first \"last\" was saved "
                          "(one is saved after each epoch, or every save_every= steps); start again with "
                          "`stoker train --config {}`{}",
                          name, printable(run.config().native()), from_best);
  }
  try {
    return store.load("last");
  } catch (const CheckpointError& error) {
    if (from_best.empty()) {
      throw;
    }
    fail<CheckpointError>("job", "{}{}", error.what(), from_best);
  }
}

void check_same_data(const io::Checkpoint& resumed, const fs::path& checkpoint, const tasks::ReadyTask& task,
                     const fs::path& run) {
  const std::string name = printable(run.native());
  task.check_same(resumed.info, name);
  const ModelCard card = card_from_json(resumed.info, checkpoint);
  if (card.train_samples != task.size(tasks::Split::kTrain)) {
    fail<CheckpointError>(
        "job.resumption",
        "the data now has {} training samples, but the run was started with {}; {} cannot continue; train again "
        "with weights={}",
        task.size(tasks::Split::kTrain), card.train_samples, name, name);
  }
}

void check_not_passed(const train::Progress& progress, const train::Plan& before, const train::Plan& plan,
                      std::int64_t train_samples) {
  const std::int64_t end = train::total_steps(plan, train_samples);
  if (end < progress.step && end != train::total_steps(before, train_samples)) {
    fail<ConfigError>(
        "job.resumption", "the run is at step {}, but {} ends it at step {}; set a larger value, or remove it",
        progress.step, plan.steps > 0 ? fmt::format("steps={}", plan.steps) : fmt::format("epochs={}", plan.epochs),
        end);
  }
}

std::string nothing_left(const train::Progress& progress, const train::Plan& plan, std::int64_t train_samples,
                         const fs::path& run) {
  const std::string resume = fmt::format("`stoker resume {}", printable(run.native()));
  if (progress.step >= train::total_steps(plan, train_samples) && plan.steps > 0) {
    return fmt::format("nothing left to train: all steps ({}) are done; for more: {} steps={}`", progress.step, resume,
                       2 * progress.step);
  }
  if (progress.step >= train::total_steps(plan, train_samples)) {
    return fmt::format("nothing left to train: all epochs ({}) are done; for more: {} epochs={}`", plan.epochs, resume,
                       2 * plan.epochs);
  }
  if (plan.time > 0 && progress.seconds >= plan.time) {
    return fmt::format("nothing left to train: time={}s is used up; for more: {} time={}s`", plan.time, resume,
                       2 * plan.time);
  }
  return "";
}

}  // namespace stoker::job
