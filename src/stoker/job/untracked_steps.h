// SPDX-License-Identifier: Apache-2.0
// Trains some steps as a run does, but without a run folder: no logs, no checkpoints, no evaluation. For profiles of a
// run that has ended and of a data folder. Part of Job. One thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "stoker/io/checkpoint/store.h"
#include "stoker/job/request.h"
#include "stoker/job/setup.h"

namespace stoker::job {

// Trains from the checkpoint, or from the start, until `steps` of them are profiled; returns the record
// (profile_json.h). trace: the file that gets the trace. say: progress and warnings, one at a time; warnings are also
// notes of the record. Errors as Job::train(), and those of the profiler.
[[nodiscard]] std::string profile_untracked(Setup& setup, const std::optional<io::Checkpoint>& resumed,
                                            std::int64_t steps, const std::filesystem::path& trace, const Say& say);

}  // namespace stoker::job
