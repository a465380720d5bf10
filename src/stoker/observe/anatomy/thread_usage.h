// SPDX-License-Identifier: Apache-2.0
// What the kernel counts for the calling thread. Read by StepAnatomy once per step (0.15 us). Thread-safe: no state.
#pragma once

#include <cstdint>

namespace stoker::observe {

struct ThreadUsage {
  double cpu_seconds = 0;
  std::int64_t minor_faults = 0;  // page faults without reading a disk
  std::int64_t major_faults = 0;  // page faults that read a disk
  std::int64_t voluntary = 0;     // switches because the thread waited
  std::int64_t involuntary = 0;   // switches because the kernel took the core away
};

[[nodiscard]] ThreadUsage thread_usage();
[[nodiscard]] ThreadUsage operator-(const ThreadUsage& later, const ThreadUsage& earlier);

}  // namespace stoker::observe
