// SPDX-License-Identifier: Apache-2.0
// The host memory that this process may use: how much it has, how much others use, and how much more it can take before
// an allocation fails or the kernel kills it. Used by Backend, job and the CPU allocator's cap. Thread-safe: no state.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace stoker::device {

// Bytes; -1 if unknown.
struct HostMemory {
  // The smallest of all RAM (MemTotal), the limits of the process's cgroups and their ancestors (v2 memory.max and
  // memory.high, v1 memory.limit_in_bytes) and `ulimit -v`.
  std::int64_t limit = -1;
  // What this process can take in addition: the least that any of these limits leaves. A cgroup leaves its limit minus
  // its usage, plus its inactive file cache, which the kernel drops first. The machine leaves MemAvailable. `ulimit -v`
  // leaves addresses, which include memory that was reserved and never touched. Swap is not counted: a step that swaps
  // takes minutes. 0 where the limit is reached.
  std::int64_t available = -1;
  std::int64_t own_resident = -1;    // of this process: VmRSS
  std::int64_t used_by_others = -1;  // limit - available - own_resident, at least 0
  std::string reason;  // what leaves the least: "the machine's RAM", "memory.max of the cgroup /jobs/a", "ulimit -v"
};

// root: prefix of /proc and /sys, for tests. Reads four files of /proc, one or two of each cgroup, and two more of a
// cgroup with a limit: about 0.1 ms in all.
[[nodiscard]] HostMemory host_memory(const std::filesystem::path& root = "/");

// Only host_memory().limit.
[[nodiscard]] std::int64_t memory_limit_bytes(const std::filesystem::path& root = "/");

// Bytes that must stay free of tensors: 5 % of the limit, at least 64 MiB and at most 1 GiB. The allocator of tensors
// never sees oneDNN's scratch memory, std::vector (decoded images, batches ahead), stacks of threads, page tables and
// the memory that malloc holds back; these grow with the work, so with the machine, but not without end. At the limit
// of a cgroup the kernel kills the process and no error can be caught, so too large a margin costs a twentieth of the
// memory, too small a margin costs the run.
[[nodiscard]] std::int64_t host_margin(std::int64_t limit);

// The most bytes of CPU tensors that the process should hold: allocated_now, those it holds now, plus what is
// available, minus the margin. Never less than allocated_now, so that a cap on a full host refuses new tensors and
// nothing else. -1, no cap, if the available memory is unknown.
[[nodiscard]] std::int64_t default_host_cap(const HostMemory& memory, std::int64_t allocated_now);

}  // namespace stoker::device
