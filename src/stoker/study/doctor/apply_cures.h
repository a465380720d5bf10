// SPDX-License-Identifier: Apache-2.0
// Tries the options that the doctor proposes for a run of Stoker, in short trainings of the same plan. Called by
// `stoker doctor --apply RUN`. For the main thread: it handles signals.
#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "stoker/study/doctor/cures.h"

namespace stoker::study {

struct ApplyOptions {
  std::filesystem::path run;
  int pairs = 5;
  bool resumable = false;                       // only options that a run may go on with
  const std::atomic<bool>* stop = nullptr;      // as good as a signal; null: none
  std::function<void(const std::string&)> say;  // progress; lines end with a newline
};

// Each option alone, beside what was kept before, with everything else as the run's plan says. The run is not touched.
// A signal ends it with what was tried until then. DataError as examine_path(); ConfigError for what is no run of
// Stoker, and for one that trains.
[[nodiscard]] Trials apply_cures(const ApplyOptions& options);

// Those of the kept options that a run may go on with.
[[nodiscard]] std::vector<std::string> kept_changes(const Trials& trials);

// How to go on with what was kept: a command, or two to choose from; empty if nothing was.
[[nodiscard]] std::string next_command(const ApplyOptions& options, const Trials& trials);

}  // namespace stoker::study
