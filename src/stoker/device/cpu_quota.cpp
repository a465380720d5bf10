// SPDX-License-Identifier: Apache-2.0
// Files and their meaning: Linux Documentation/admin-guide/cgroup-v2.rst (cpu.max) and scheduler/sched-bwc.rst (v1).
#include "stoker/device/cpu_quota.h"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <string_view>

#include "stoker/base/fmt.h"
#include "stoker/device/cgroup.h"
#include "stoker/device/kernel_file.h"

namespace stoker::device {
namespace {

namespace fs = std::filesystem;

// Cores in the affinity mask; the kernel rejects masks that are too short for the machine.
int affinity_cores() {
  for (int cores = 1024; cores <= (1 << 20); cores *= 4) {
    cpu_set_t* mask = CPU_ALLOC(cores);
    const std::size_t bytes = CPU_ALLOC_SIZE(cores);
    const bool fits = sched_getaffinity(0, bytes, mask) == 0;
    const int count = fits ? CPU_COUNT_S(bytes, mask) : 0;
    CPU_FREE(mask);
    if (fits) {
      return std::max(count, 1);
    }
  }
  return 1;
}

void lower(double& limit, double candidate) { limit = limit == 0 ? candidate : std::min(limit, candidate); }

// Cores by quota / period; 0 if no group limits them.
double quota_cores(const fs::path& root) {
  const std::string table = read_kernel_file(root / "proc/self/cgroup");
  double cores = 0;
  for_each_group(root, table, "", {"", "unified"}, [&](const fs::path& group) {
    const std::string text = read_kernel_file(group / "cpu.max");  // "150000 100000" or "max 100000", microseconds
    const std::size_t blank = text.find(' ');
    const auto quota = leading_number(text);
    const auto period = leading_number(blank == std::string::npos ? "" : std::string_view(text).substr(blank + 1));
    if (quota && period && *quota > 0 && *period > 0) {
      lower(cores, static_cast<double>(*quota) / static_cast<double>(*period));
    }
  });
  for_each_group(root, table, "cpu", {"cpu", "cpu,cpuacct"}, [&](const fs::path& group) {
    const auto quota = leading_number(read_kernel_file(group / "cpu.cfs_quota_us"));  // -1: unlimited
    const auto period = leading_number(read_kernel_file(group / "cpu.cfs_period_us"));
    if (quota && period && *quota > 0 && *period > 0) {
      lower(cores, static_cast<double>(*quota) / static_cast<double>(*period));
    }
  });
  return cores;
}

}  // namespace

CpuQuota cpu_quota(const fs::path& root) {
  CpuQuota result;
  result.affinity = affinity_cores();
  result.quota = quota_cores(root);
  const bool limited = result.quota > 0 && result.quota < result.affinity;
  result.cores = limited ? std::max(1, static_cast<int>(std::floor(result.quota))) : result.affinity;
  result.reason =
      limited ? fmt::format("cgroup quota of {:.3g} cores, {} in the affinity mask", result.quota, result.affinity)
              : fmt::format("{} cores in the affinity mask", result.affinity);
  return result;
}

}  // namespace stoker::device
