// SPDX-License-Identifier: Apache-2.0
// Figures of the control groups that a process belongs to (cgroups v1 and v2): how long its CPU quota stopped it, its
// memory against the limit, and the pressure on CPU, memory and disks. Used by the monitor. One thread.
#pragma once

#include <filesystem>
#include <optional>
#include <vector>

#include "stoker/device/kernel_file.h"
#include "stoker/observe/monitor/window.h"

namespace stoker::observe {

// Counters of "some" in a pressure file: seconds in which at least one task waited.
[[nodiscard]] std::optional<double> pressure_seconds(std::string_view text);

class GroupWatch {
 public:
  // root: prefix of /proc and /sys.
  explicit GroupWatch(const std::filesystem::path& root);

  // Figures since the last call (or the constructor), `seconds` ago: cgroup.throttled_share and others. Without a
  // cgroup's own pressure files, the machine's: machine.cpu_pressure_share.
  void report(double seconds, Figures& figures);

 private:
  struct Pressure {
    std::string name;  // of the figure
    device::KernelFile file;
    std::optional<double> before;
  };
  // Of the cgroup with the lowest CPU quota.
  struct Quota {
    double cores = 0;
    device::KernelFile stat;
    std::optional<double> periods, throttled, stopped_seconds;
  };
  struct Memory {
    double limit_bytes = 0;
    device::KernelFile usage;
  };

  void find_quota(const std::filesystem::path& root, std::string_view table);
  void find_memory(const std::filesystem::path& root, std::string_view table);
  void find_pressure(const std::filesystem::path& root, std::string_view table);
  void report_quota(double seconds, Figures& figures);

  std::optional<Quota> quota_;
  std::optional<Memory> memory_;
  std::vector<Pressure> pressures_;
};

}  // namespace stoker::observe
