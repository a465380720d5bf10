// SPDX-License-Identifier: Apache-2.0
// Files and their meaning: Linux Documentation/admin-guide/cgroup-v2.rst, scheduler/sched-bwc.rst (v1),
// accounting/psi.rst.
#include "stoker/observe/monitor/group_reader.h"

#include <algorithm>

#include "stoker/base/fmt.h"
#include "stoker/device/cgroup.h"

namespace stoker::observe {
namespace {

namespace fs = std::filesystem;
using device::KernelFile;
using device::leading_number;
using device::read_kernel_file;

constexpr double kNoLimit = 0x1p60;  // v1 writes almost 2^63

// The value behind "key " on its own line.
std::optional<double> value_of(std::string_view text, std::string_view key) {
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text = end == text.npos ? std::string_view{} : text.substr(end + 1);
    if (line.starts_with(key) && line.size() > key.size() && line[key.size()] == ' ') {
      const auto value = leading_number(line.substr(key.size() + 1));
      return value ? std::optional(static_cast<double>(*value)) : std::nullopt;
    }
  }
  return std::nullopt;
}

std::optional<double> number(std::string_view text) {
  const auto value = leading_number(text);
  return value ? std::optional(static_cast<double>(*value)) : std::nullopt;
}

// Cores by quota and period; none if there is no limit.
std::optional<double> cores(std::optional<double> quota, std::optional<double> period) {
  return quota && period && *quota > 0 && *period > 0 ? std::optional(*quota / *period) : std::nullopt;
}

std::optional<double> stopped_seconds(std::string_view stat) {
  if (const auto v2 = value_of(stat, "throttled_usec")) {
    return *v2 * 1e-6;
  }
  const auto v1 = value_of(stat, "throttled_time");
  return v1 ? std::optional(*v1 * 1e-9) : std::nullopt;
}

}  // namespace

std::optional<double> pressure_seconds(std::string_view text) {
  const std::size_t total = text.starts_with("some ") ? text.find("total=") : text.npos;
  const auto microseconds = total == text.npos ? std::nullopt : number(text.substr(total + 6));
  return microseconds ? std::optional(*microseconds * 1e-6) : std::nullopt;
}

GroupWatch::GroupWatch(const fs::path& root) {
  const std::string table = read_kernel_file(root / "proc/self/cgroup");
  find_quota(root, table);
  find_memory(root, table);
  find_pressure(root, table);
  Figures none;
  report(1, none);
}

void GroupWatch::find_quota(const fs::path& root, std::string_view table) {
  const auto take = [&](const fs::path& group, std::optional<double> found) {
    if (found && (!quota_ || *found < quota_->cores)) {
      quota_.emplace(Quota{*found, KernelFile(group / "cpu.stat"), {}, {}, {}});
    }
  };
  device::for_each_group(root, table, "", {"", "unified"}, [&](const fs::path& group) {
    const std::string text = read_kernel_file(group / "cpu.max");
    const std::size_t blank = text.find(' ');
    take(group,
         cores(number(text), blank == text.npos ? std::nullopt : number(std::string_view(text).substr(blank + 1))));
  });
  device::for_each_group(root, table, "cpu", {"cpu", "cpu,cpuacct"}, [&](const fs::path& group) {
    take(group, cores(number(read_kernel_file(group / "cpu.cfs_quota_us")),
                      number(read_kernel_file(group / "cpu.cfs_period_us"))));
  });
}

void GroupWatch::find_memory(const fs::path& root, std::string_view table) {
  const auto take = [&](const fs::path& group, const char* limit, const char* usage) {
    const auto bytes = number(read_kernel_file(group / limit));
    if (bytes && *bytes >= 0 && *bytes < kNoLimit && (!memory_ || *bytes < memory_->limit_bytes)) {
      memory_.emplace(Memory{*bytes, KernelFile(group / usage)});
    }
  };
  device::for_each_group(root, table, "", {"", "unified"},
                         [&](const fs::path& group) { take(group, "memory.max", "memory.current"); });
  device::for_each_group(root, table, "memory", {"memory"},
                         [&](const fs::path& group) { take(group, "memory.limit_in_bytes", "memory.usage_in_bytes"); });
}

void GroupWatch::find_pressure(const fs::path& root, std::string_view table) {
  for (const char* what : {"cpu", "memory", "io"}) {
    fs::path own;
    device::for_each_group(root, table, "", {"", "unified"}, [&](const fs::path& group) {
      const fs::path file = group / fmt::format("{}.pressure", what);
      if (own.empty() && pressure_seconds(read_kernel_file(file))) {
        own = file;
      }
    });
    const bool machine = own.empty();
    pressures_.push_back({fmt::format("{}.{}_pressure_share", machine ? "machine" : "cgroup", what),
                          KernelFile(machine ? root / "proc/pressure" / what : own), std::nullopt});
  }
}

void GroupWatch::report_quota(double seconds, Figures& figures) {
  const std::string_view stat = quota_->stat.read();
  const auto periods = value_of(stat, "nr_periods"), throttled = value_of(stat, "nr_throttled");
  const auto stopped = stopped_seconds(stat);
  const auto more = rate(quota_->periods, periods, seconds), hit = rate(quota_->throttled, throttled, seconds);
  figures.put("cgroup.cpu_limit_cores", quota_->cores);
  figures.put("cgroup.throttled_share", more && hit && *more > 0 ? std::optional(*hit / *more) : std::nullopt);
  figures.put("cgroup.throttled_cores", rate(quota_->stopped_seconds, stopped, seconds));
  quota_->periods = periods;
  quota_->throttled = throttled;
  quota_->stopped_seconds = stopped;
}

void GroupWatch::report(double seconds, Figures& figures) {
  if (quota_) {
    report_quota(seconds, figures);
  }
  if (memory_) {
    figures.put("cgroup.memory_bytes", number(memory_->usage.read()));
    figures.put("cgroup.memory_limit_bytes", memory_->limit_bytes);
  }
  for (Pressure& pressure : pressures_) {
    const auto now = pressure_seconds(pressure.file.read());
    const auto share = rate(pressure.before, now, seconds);
    figures.put(pressure.name, share ? std::optional(std::min(*share, 1.0)) : std::nullopt);  // the kernel adds up late
    pressure.before = now;
  }
}

}  // namespace stoker::observe
