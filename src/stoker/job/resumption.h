// SPDX-License-Identifier: Apache-2.0
// Whether a run can go on from its checkpoint, and whether anything is left for it. The part of Job::resume that looks
// before it leaps. One thread.
#pragma once

#include <filesystem>
#include <string>

#include "stoker/io/checkpoint/store.h"
#include "stoker/job/run_folder.h"
#include "stoker/tasks/task.h"
#include "stoker/train/plan.h"
#include "stoker/train/progress.h"

namespace stoker::job {

// The checkpoint that a run goes on from. CheckpointError that says how to start again where there is none.
[[nodiscard]] io::Checkpoint load_last(const RunFolder& run);

// CheckpointError where the data is not what it was: the order of samples follows from their number, a class's output
// from its rank.
void check_same_data(const io::Checkpoint& resumed, const std::filesystem::path& checkpoint,
                     const tasks::ReadyTask& task, const std::filesystem::path& run);

// ConfigError where the plan, changed since `before`, ends ahead of what is done.
void check_not_passed(const train::Progress& progress, const train::Plan& before, const train::Plan& plan,
                      std::int64_t train_samples);

// What to ask for where all that was planned is done; empty: something is left.
[[nodiscard]] std::string nothing_left(const train::Progress& progress, const train::Plan& plan,
                                       std::int64_t train_samples, const std::filesystem::path& run);

}  // namespace stoker::job
