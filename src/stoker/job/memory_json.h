// SPDX-License-Identifier: Apache-2.0
// artifacts/memory.json: a recorded step and what the run knows beside it (docs/formats.md). Written by
// job::MemoryWatch; read by `stoker memory` and the report. Thread-safe: no state.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <string>
#include <vector>

#include "stoker/device/backend.h"
#include "stoker/memory/microbatch.h"
#include "stoker/memory/step_record.h"

namespace stoker::job {

inline constexpr const char* kMemoryFile = "artifacts/memory.json";  // in a run folder
inline constexpr int kMemoryFormat = 1;

// When the step was recorded.
struct MemoryRecord {
  std::int64_t step = 0;     // counted from 1
  std::int64_t samples = 0;  // of this process's part of the batch
  std::int64_t microbatch = 0;
  c10::Device device = c10::Device(c10::kCPU);
  device::MemoryFigures figures = {};
  std::int64_t inactive = -1;  // device/memory_snapshot.h
  std::int64_t retries = -1;
  std::int64_t heap_kept = -1;  // by the C library
};

// Of the run so far.
struct MemoryOfRun {
  std::int64_t host_peak = -1;  // of the process
  memory::MicrobatchSchedule schedule = {};
  std::vector<std::string> findings = {};
};

[[nodiscard]] std::string memory_json(const MemoryRecord& facts, const memory::StepRecord& record);
// The same with what the run knows.
[[nodiscard]] std::string with_run_facts(const std::string& json, const MemoryOfRun& run);

}  // namespace stoker::job
