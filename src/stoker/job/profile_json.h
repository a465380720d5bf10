// SPDX-License-Identifier: Apache-2.0
// The record of a profile as JSON (docs/observe-profile.md): written by ProfileWatch, shown by profile_text(), printed
// by `stoker profile --json`. Thread-safe: no state.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "stoker/observe/profile/ceilings.h"
#include "stoker/observe/profile/host_code.h"
#include "stoker/observe/profile/profile_table.h"

namespace stoker::job {

inline constexpr int kProfileFormat = 1;

struct ProfileFacts {
  std::string title;               // "cnn on digits, cpu, fp32"
  std::string device;              // "cpu", "cuda:0"
  std::string trace;               // the trace's path, as people should see it
  std::int64_t first_step = 0;     // counted over the whole run, from 1
  std::int64_t samples = 0;        // in the last batch, over all ranks
  double usual_seconds = -1;       // of a step before, the median; -1: unknown
  double step_seconds = 0;         // of a step that was recorded, the median
  double pause_seconds = 0;        // for which the run stopped to write this
  std::vector<std::string> notes;  // what is missing, and why
};

[[nodiscard]] std::string profile_json(const ProfileFacts& facts, const observe::profile::ProfileTable& table,
                                       const observe::profile::Ceilings& ceilings,
                                       const observe::profile::HostCode& code);

}  // namespace stoker::job
