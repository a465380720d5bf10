// SPDX-License-Identifier: Apache-2.0
// Checks whether a run can continue from its checkpoint, and whether anything is left to do. The part of Job::resume
// that checks before it starts. One thread.
#pragma once

#include <filesystem>
#include <string>

#include "stoker/io/checkpoint/store.h"
#include "stoker/job/run_folder.h"
#include "stoker/tasks/task.h"
#include "stoker/train/plan.h"
#include "stoker/train/progress.h"

namespace stoker::job {

// The checkpoint that a run continues from. CheckpointError that says how to start again if there is none.
[[nodiscard]] io::Checkpoint load_last(const RunFolder& run);

// CheckpointError if the data changed: the order of samples depends on their number, and a class's output on its rank.
void check_same_data(const io::Checkpoint& resumed, const std::filesystem::path& checkpoint,
                     const tasks::ReadyTask& task, const std::filesystem::path& run);

// ConfigError if the plan, changed since `before`, ends before the current step.
void check_not_passed(const train::Progress& progress, const train::Plan& before, const train::Plan& plan,
                      std::int64_t train_samples);

// How to train more if everything in the plan is done; empty: something is left.
[[nodiscard]] std::string nothing_left(const train::Progress& progress, const train::Plan& plan,
                                       std::int64_t train_samples, const std::filesystem::path& run);

}  // namespace stoker::job
