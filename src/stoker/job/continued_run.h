// SPDX-License-Identifier: Apache-2.0
// The run that a repeated command goes on with. torchrun, Slurm and Kubernetes give the same command again after a
// failure or a preemption, so `train` must find what the processes before it have begun. Used by Job. No state.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "stoker/job/request.h"
#include "stoker/job/run_folder.h"

namespace stoker::job {

struct ContinuedRun {
  std::filesystem::path run;
  std::vector<std::string> changes;  // key=value, as of Job::resume
};

// The run that the request names, or, of a repeated start, the newest one with its identity (Request::start). None if
// no starter repeats the command, or if there is no such run. ConfigError if the run is that of another command.
[[nodiscard]] std::optional<ContinuedRun> run_to_continue(const Request& request);

// Writes the identity into the folder of a new run.
void record_start(const RunFolder& run, const Request& request);

}  // namespace stoker::job
