// SPDX-License-Identifier: Apache-2.0
// The cores that this process may use, by affinity mask and cgroup CPU quota. Containers show the whole machine in
// /proc/cpuinfo; this is the number to plan with. Used by train::resolve and job for the thread budget. Thread-safe: no
// state.
#pragma once

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

}  // namespace stoker::device
