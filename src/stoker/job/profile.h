// SPDX-License-Identifier: Apache-2.0
// What `stoker profile` does: asks a run that trains for a profile of its next steps, or trains some steps that nobody
// keeps, from the last checkpoint of a run that has ended or from the start on some data. One thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "stoker/job/request.h"
#include "stoker/train/profile_steps.h"

namespace stoker::job {

struct ProfileWish {
  static constexpr std::int64_t kMostSteps = train::kMostProfileSteps;
  std::int64_t steps = train::kProfileSteps;
  std::filesystem::path trace;  // empty: profile.pt.trace.json.gz in the current folder, or profile-2..., -3, ...
};

// The record as JSON (docs/observe-profile.md). A run that trains writes trace and record into its own folder. The
// folder of one that has ended does not change. say: progress. Errors as Job::resume(); IoError if the run ends first.
[[nodiscard]] std::string profile_run(const std::filesystem::path& run, const ProfileWish& wish, const Say& say);
// Of the plan that the request would train with. Errors as Job::prepare().
[[nodiscard]] std::string profile_data(const Request& request, const ProfileWish& wish, const Say& say);

}  // namespace stoker::job
