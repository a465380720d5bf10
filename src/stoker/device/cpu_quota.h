// SPDX-License-Identifier: Apache-2.0
// The resources that this process may use: cores by affinity mask and cgroup CPU quota, and memory by cgroup limit.
// Containers show the whole machine in /proc/cpuinfo; these are the numbers to plan with. Used by train::resolve and
// job for the thread budget. Thread-safe: no state.
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

// root: prefix of /proc and /sys, for tests. Includes every ancestor of the process's cgroup; the lowest limit counts.
[[nodiscard]] CpuQuota cpu_quota(const std::filesystem::path& root = "/");
// Bytes: the smallest memory limit of the process's cgroups (v1 and v2), else all RAM (MemTotal); -1 if unknown.
[[nodiscard]] std::int64_t memory_limit_bytes(const std::filesystem::path& root = "/");

}  // namespace stoker::device
