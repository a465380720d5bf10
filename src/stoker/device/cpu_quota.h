// SPDX-License-Identifier: Apache-2.0
// What this process may use of the machine: the cores of its affinity mask under its cgroup's CPU quota, and the memory
// under its cgroup's limit. Containers show the whole machine in /proc/cpuinfo; these are the figures to plan with.
// Used by train::resolve and job for the thread budget. Thread-safe: no state.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace stoker::device {

struct CpuQuota {
  int cores = 1;       // whole cores to plan with, at least 1: min(affinity, quota rounded down)
  int affinity = 1;    // cores in the affinity mask
  double quota = 0;    // cores by cgroup quota (quota / period), 0 if unlimited
  std::string reason;  // "2 cores in the affinity mask", "cgroup quota of 1.5 cores, 8 in the affinity mask"
};

// root: prefix of /proc and /sys, for tests. Every ancestor of the process's cgroup counts: the tightest limit holds.
[[nodiscard]] CpuQuota cpu_quota(const std::filesystem::path& root = "/");
// Bytes: the smallest memory limit of the process's cgroups (v1 and v2), else all RAM (MemTotal); -1 if unknown.
[[nodiscard]] std::int64_t memory_limit_bytes(const std::filesystem::path& root = "/");

}  // namespace stoker::device
