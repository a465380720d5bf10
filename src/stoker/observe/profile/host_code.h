// SPDX-License-Identifier: Apache-2.0
// Where the CPU time of the process's threads went, by function and by source line. Made of what HostSampler took; part
// of a profile's record. Thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "stoker/observe/profile/code_places.h"
#include "stoker/observe/profile/host_sampler.h"

namespace stoker::observe::profile {

struct FunctionRow {
  std::string function, file, module;  // file: of the source; empty: unknown
  std::int32_t line = 0;               // where most of its samples were; 0: unknown
  bool own = false;                    // of this program
  std::int64_t samples = 0;            // in the function itself, not in what it called
};

struct ThreadRow {
  std::string name;
  std::int64_t samples = 0;
};

struct HostCode {
  std::int64_t samples = 0;
  std::vector<ThreadRow> threads;      // threads of one name together; the busiest first
  std::vector<FunctionRow> functions;  // the most samples first
};

// named: places of addresses; for tests.
using NamePlaces = std::function<std::map<std::uintptr_t, CodePlace>(std::span<const std::uintptr_t>)>;
[[nodiscard]] HostCode host_code(std::span<const HostSample> samples, const NamePlaces& named = code_places);

}  // namespace stoker::observe::profile
