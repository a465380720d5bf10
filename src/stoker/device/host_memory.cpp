// SPDX-License-Identifier: Apache-2.0
// Files and their meaning: Linux Documentation/admin-guide/cgroup-v2.rst (memory.max, memory.high, memory.stat),
// cgroup-v1/memory.rst, and proc(5) for meminfo, statm and limits.
#include "stoker/device/host_memory.h"

#include <unistd.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "stoker/base/fmt.h"
#include "stoker/device/cgroup.h"
#include "stoker/device/kernel_file.h"

namespace stoker::device {
namespace {

namespace fs = std::filesystem;

// The names of one version of cgroups.
struct Files {
  std::vector<const char*> limits;
  const char* usage;
  std::string_view reclaimable;  // in memory.stat, of the group and all below it
};
const Files kV1{{"memory.limit_in_bytes"}, "memory.usage_in_bytes", "total_inactive_file"};
const Files kV2{{"memory.max", "memory.high"}, "memory.current", "inactive_file"};

// The value of a line "key value"; 0 if it is missing.
std::int64_t stat_value(std::string_view text, std::string_view key) {
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
    if (line.starts_with(key) && line.size() > key.size() && line[key.size()] == ' ') {
      return leading_number(line.substr(key.size() + 1)).value_or(0);
    }
  }
  return 0;
}

void lower(std::int64_t& bytes, std::int64_t candidate) { bytes = bytes < 0 ? candidate : std::min(bytes, candidate); }

// Collects limits and what they leave.
class Survey {
 public:
  Survey(const fs::path& root, bool usage) : root_(root), usage_(usage) {}

  void machine() {
    const std::string text = read_kernel_file(root_ / "proc/meminfo");
    const std::int64_t total = kernel_bytes(text, "MemTotal"), available = kernel_bytes(text, "MemAvailable");
    if (total >= 0) {
      lower(found.limit, total);
    }
    if (available >= 0) {
      leave(available, "the machine's RAM");
    }
  }
  void groups() {
    const std::string table = read_kernel_file(root_ / "proc/self/cgroup");
    for_each_group(root_, table, "", {"", "unified"}, [&](const fs::path& group) { look_at(group, kV2); });
    for_each_group(root_, table, "memory", {"memory"}, [&](const fs::path& group) { look_at(group, kV1); });
  }
  // A line of limits: "Max address space         unlimited            unlimited            bytes".
  void addresses() {
    constexpr std::string_view kName = "Max address space";
    const std::string text = read_kernel_file(root_ / "proc/self/limits");
    const std::size_t line = text.find(kName);
    const std::size_t value = line == text.npos ? line : text.find_first_not_of(' ', line + kName.size());
    const auto most = value == text.npos ? std::nullopt : leading_number(std::string_view(text).substr(value));
    if (most) {
      lower(found.limit, *most);
      if (addresses_ >= 0) {
        leave(*most - addresses_, "ulimit -v");
      }
    }
  }
  // statm: "size resident shared text lib data dt", in pages.
  void own() {
    const std::string text = read_kernel_file(root_ / "proc/self/statm");
    const std::size_t blank = text.find(' ');
    const std::int64_t page = ::sysconf(_SC_PAGESIZE);
    const auto size = leading_number(text);
    const auto resident = blank == text.npos ? std::nullopt : leading_number(std::string_view(text).substr(blank + 1));
    addresses_ = size ? *size * page : -1;
    found.own_resident = resident ? *resident * page : -1;
  }

  HostMemory found;

 private:
  void look_at(const fs::path& group, const Files& files) {
    for (const char* name : files.limits) {
      const auto limit = leading_number(read_kernel_file(group / name));  // "max" or a missing file means no limit
      if (!limit || *limit < 0 || *limit >= kUnlimited) {
        continue;
      }
      lower(found.limit, *limit);
      const auto used = usage_ ? leading_number(read_kernel_file(group / files.usage)) : std::nullopt;
      if (used) {
        const std::int64_t cache = stat_value(read_kernel_file(group / "memory.stat"), files.reclaimable);
        leave(*limit - *used + cache, fmt::format("{} of {}", name, group.native()));
      }
    }
  }
  void leave(std::int64_t bytes, std::string reason) {
    bytes = std::max<std::int64_t>(bytes, 0);
    if (found.available < 0 || bytes < found.available) {
      found.available = bytes;
      found.reason = std::move(reason);
    }
  }

  // v1 writes LONG_MAX rounded to a page for "no limit"; no machine has a tenth of it.
  static constexpr std::int64_t kUnlimited = std::int64_t{1} << 60;

  const fs::path& root_;
  bool usage_;
  std::int64_t addresses_ = -1;  // bytes that the process has mapped: VmSize
};

}  // namespace

HostMemory host_memory(const fs::path& root) {
  Survey survey(root, /*usage=*/true);
  survey.own();
  survey.machine();
  survey.groups();
  survey.addresses();
  HostMemory& found = survey.found;
  if (found.available >= 0 && found.limit >= 0) {
    found.available = std::min(found.available, found.limit);
    const std::int64_t own = std::max<std::int64_t>(found.own_resident, 0);
    found.used_by_others = std::max<std::int64_t>(found.limit - found.available - own, 0);
  }
  return std::move(found);
}

std::int64_t memory_limit_bytes(const fs::path& root) {
  Survey survey(root, /*usage=*/false);
  survey.machine();
  survey.groups();
  survey.addresses();
  return survey.found.limit;
}

std::int64_t host_margin(std::int64_t limit) {
  constexpr std::int64_t kLeast = std::int64_t{64} << 20, kMost = std::int64_t{1} << 30;
  return std::clamp(limit / 20, kLeast, kMost);
}

std::int64_t default_host_cap(const HostMemory& memory, std::int64_t allocated_now) {
  if (memory.available < 0) {
    return -1;
  }
  return allocated_now + std::max<std::int64_t>(memory.available - host_margin(memory.limit), 0);
}

}  // namespace stoker::device
