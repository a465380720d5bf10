// SPDX-License-Identifier: Apache-2.0
// Facts about the process and its machine, for run records, benches and progress lines; read from the kernel at each
// call. Thread-safe: no state.
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

// Only process_memory().resident, from the fastest kernel file, /proc/self/statm; -1 if unknown.
[[nodiscard]] std::int64_t resident_bytes(const std::filesystem::path& root = "/");

// What the C library has handed out to this process (small CPU tensors included), and what it keeps for later; mallinfo2(3).
// Takes microseconds for each thousand free blocks.
struct HeapBytes {
  std::int64_t used = 0, kept = 0;
};
[[nodiscard]] HeapBytes heap_bytes();

// Number of times that the kernel preempted a thread of this process: getrusage(2), ru_nivcsw.
[[nodiscard]] std::int64_t involuntary_switches();

struct MachineFacts {
  std::string cpu;                     // model name of the first core, or "unknown CPU"
  std::vector<std::string> cpu_flags;  // of the first core, with the kernel's names
  int cores = 0;                       // online cores of the machine, not those we may use (device/cpu_quota.h)
  std::int64_t memory_bytes = -1;      // all RAM
  std::int64_t available_bytes = -1;   // RAM available without swapping
  double load_1min = -1;               // runnable processes, averaged over one minute; -1 if unknown
  std::string kernel;                  // "Linux 6.1.0-18-amd64"
};
[[nodiscard]] MachineFacts machine_facts(const std::filesystem::path& root = "/");

// Versions that results depend on, from build time.
struct Versions {
  std::string torch;     // "2.11.0"
  std::string compiler;  // "12.2.0 20220930"
};
[[nodiscard]] Versions versions();

}  // namespace stoker::device
