// SPDX-License-Identifier: Apache-2.0
// The process and its machine, for run records, benches and progress lines: every figure read from the kernel at the
// moment of the call. Thread-safe: no state.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace stoker::device {

// Bytes, -1 if unknown.
struct ProcessMemory {
  std::int64_t resident = -1;  // VmRSS
  std::int64_t peak = -1;      // VmHWM
};
// root: prefix of /proc, for tests.
[[nodiscard]] ProcessMemory process_memory(const std::filesystem::path& root = "/");

// process_memory().resident alone, from the kernel's shortest file, /proc/self/statm; -1 if unknown.
[[nodiscard]] std::int64_t resident_bytes(const std::filesystem::path& root = "/");

// How often the kernel has taken a core from a thread of this process that had more to compute: getrusage(2),
// ru_nivcsw.
[[nodiscard]] std::int64_t involuntary_switches();

struct MachineFacts {
  std::string cpu;                     // model name of the first core, "unknown CPU" if the kernel does not tell
  std::vector<std::string> cpu_flags;  // of the first core, as the kernel names them
  int cores = 0;                       // online cores of the machine, not those we may use (device/cpu_quota.h)
  std::int64_t memory_bytes = -1;      // all RAM
  std::int64_t available_bytes = -1;   // RAM that could be had without swapping
  double load_1min = -1;               // runnable processes, averaged over one minute; -1 if unknown
  std::string kernel;                  // "Linux 6.1.0-18-amd64"
};
[[nodiscard]] MachineFacts machine_facts(const std::filesystem::path& root = "/");

// Versions that a result depends on, as they were at build time.
struct Versions {
  std::string torch;     // "2.11.0"
  std::string compiler;  // "12.2.0 20220930"
};
[[nodiscard]] Versions versions();

}  // namespace stoker::device
