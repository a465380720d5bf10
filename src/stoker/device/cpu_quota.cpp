// SPDX-License-Identifier: Apache-2.0
// Files and their meaning: Linux Documentation/admin-guide/cgroup-v2.rst (cpu.max, memory.max) and cgroup-v1/.
#include "stoker/device/cpu_quota.h"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "stoker/base/fmt.h"
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

// The path of this process in the hierarchy of a controller ("" for v2), from lines "id:controllers:path".
std::optional<std::string> cgroup_path(std::string_view table, std::string_view controller) {
  while (!table.empty()) {
    const std::size_t end = table.find('\n');
    const std::string_view line = table.substr(0, end);
    table = end == std::string_view::npos ? std::string_view{} : table.substr(end + 1);
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string_view::npos ? first : line.find(':', first + 1);
    if (second == std::string_view::npos) {
      continue;
    }
    const std::string names = fmt::format(",{},", line.substr(first + 1, second - first - 1));
    if (names.find(fmt::format(",{},", controller)) != std::string::npos) {
      return std::string(line.substr(second + 1));
    }
  }
  return std::nullopt;
}

// Calls visit for the group of the process and every ancestor, under each possible mount point of the hierarchy. In a
// container the path may name a group that is not visible; then only the mount itself is visible.
void for_each_group(const fs::path& root, std::string_view controller, const std::vector<std::string>& mounts,
                    const std::function<void(const fs::path&)>& visit) {
  const auto path = cgroup_path(read_kernel_file(root / "proc/self/cgroup"), controller);
  if (!path) {
    return;
  }
  for (const std::string& mount : mounts) {
    const fs::path base = root / "sys/fs/cgroup" / mount;
    for (fs::path group = fs::path(*path).relative_path(); !group.empty(); group = group.parent_path()) {
      visit(base / group);
    }
    visit(base);
  }
}

void lower(double& limit, double candidate) { limit = limit == 0 ? candidate : std::min(limit, candidate); }

// Cores by quota / period; 0 if no group limits them.
double quota_cores(const fs::path& root) {
  double cores = 0;
  for_each_group(root, "", {"", "unified"}, [&](const fs::path& group) {
    const std::string text = read_kernel_file(group / "cpu.max");  // "150000 100000" or "max 100000", microseconds
    const std::size_t blank = text.find(' ');
    const auto quota = leading_number(text);
    const auto period = leading_number(blank == std::string::npos ? "" : std::string_view(text).substr(blank + 1));
    if (quota && period && *quota > 0 && *period > 0) {
      lower(cores, static_cast<double>(*quota) / static_cast<double>(*period));
    }
  });
  for_each_group(root, "cpu", {"cpu", "cpu,cpuacct"}, [&](const fs::path& group) {
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

std::int64_t memory_limit_bytes(const fs::path& root) {
  std::int64_t limit = kernel_bytes(read_kernel_file(root / "proc/meminfo"), "MemTotal");
  const auto lower_to = [&](const fs::path& file) {
    const auto bytes = leading_number(read_kernel_file(file));  // "max" or a missing file means no limit
    if (bytes && *bytes > 0) {
      limit = limit < 0 ? *bytes : std::min(limit, *bytes);
    }
  };
  for_each_group(root, "", {"", "unified"}, [&](const fs::path& group) { lower_to(group / "memory.max"); });
  for_each_group(root, "memory", {"memory"}, [&](const fs::path& group) { lower_to(group / "memory.limit_in_bytes"); });
  return limit;
}

}  // namespace stoker::device
