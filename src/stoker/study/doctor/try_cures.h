// SPDX-License-Identifier: Apache-2.0
// Tries changes in somebody else's training script, which stays as it is: short runs in fresh processes, with and
// without a change, in turns. Called by `stoker doctor --try -- COMMAND`. For the main thread: it handles signals.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "stoker/study/doctor/cures.h"

namespace stoker::study {

struct TryOptions {
  std::vector<std::string> command;  // "python", "train.py", ...
  int steps = 60;                    // of a run that are measured
  int pairs = 5;                     // runs with a change, and as many without
  bool in_place = false;             // without a layer over the working folder: what the script writes is real
  std::function<void(const std::string&)> say;  // progress; lines end with a newline
};

// What will be run and what it may touch, to ask before it is done.
[[nodiscard]] std::string plan_of_trials(const TryOptions& options);

// First a run as it is; then each change alone, beside what was kept so far. A signal ends it with what was tried until
// then. ConfigError if the command cannot be started or the folder has no layer; DataError if the script ends before
// its steps, with its last words.
[[nodiscard]] Trials try_cures(const TryOptions& options);

}  // namespace stoker::study
