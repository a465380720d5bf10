// SPDX-License-Identifier: Apache-2.0
// The memory of a device over the time of a trace, from its records of allocations. Thread-safe: no state.
#pragma once

#include <cstdint>
#include <vector>

#include "stoker/observe/trace/trace.h"

namespace stoker::observe::trace {

struct MemoryPoint {
  std::int64_t time = 0;       // ns
  std::int64_t allocated = 0;  // bytes of tensors then; a sum from the trace's begin if the trace gives no totals
  std::int64_t reserved = -1;  // bytes that torch's allocator held then; -1: unknown
};

struct MemoryCurve {
  int device = -1;          // -1: the host
  bool from_begin = false;  // `allocated` counts from the trace's begin: memory from before is missing
  std::int64_t peak = 0, peak_time = 0, peak_reserved = -1;
  std::int64_t allocations = 0;
  std::vector<MemoryPoint> points;  // by time
};

// By device; devices without records are missing.
[[nodiscard]] std::vector<MemoryCurve> memory_curves(const Trace& trace);

}  // namespace stoker::observe::trace
