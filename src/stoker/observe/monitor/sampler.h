// SPDX-License-Identifier: Apache-2.0
// Collects the monitor's figures, at different paces, into one record for each window. Used by observe::Monitor on its
// thread; a test may call it with times of its own. One thread.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "stoker/core/observed.h"
#include "stoker/device/nvml.h"
#include "stoker/observe/monitor/gpu_watch.h"
#include "stoker/observe/monitor/group_reader.h"
#include "stoker/observe/monitor/machine_reader.h"
#include "stoker/observe/monitor/pace.h"
#include "stoker/observe/monitor/process_reader.h"
#include "stoker/observe/monitor/thread_reader.h"

namespace stoker::observe {

// Seconds between two calls of Sampler::tick().
inline constexpr double kTickSeconds = 0.1;

// Length of a window that begins so long after the start: 1 s in the first hour, then longer, at most 10 s, so that a
// day of records stays below 20 MB.
[[nodiscard]] double window_seconds(double since_start);

struct MonitorOptions {
  std::filesystem::path root = "/";    // prefix of /proc and /sys, for tests
  std::string process = "self";        // to watch: its number, or this one
  const device::Nvml* nvml = nullptr;  // null: no figures of GPUs
  std::string gpu_bus_id = {};         // of the run's GPU; empty: none
  // Figures of the run itself, such as its allocator's; called once per window on the monitor's thread.
  std::function<std::vector<core::Figure>()> more = {};
};

class Sampler {
 public:
  // now: as in tick().
  Sampler(const MonitorOptions& options, double now);

  // Reads what is due at `now` (seconds of a steady clock); a record if a window ended. Its time and step are the
  // caller's.
  [[nodiscard]] std::optional<core::Monitored> tick(double now);
  // The record of the window so far; none if that is too short for rates.
  [[nodiscard]] std::optional<core::Monitored> finish(double now);
  // What makes the figures misleading here; for people.
  [[nodiscard]] std::vector<std::string> pitfalls() const;

 private:
  void sample(double now);
  void close_window(double now, core::Monitored& record);
  void report_process(double seconds, Figures& figures);

  std::filesystem::path root_;
  std::function<std::vector<core::Figure>()> more_;
  ProcessReader process_;
  MachineWatch machine_;
  GroupWatch groups_;
  ThreadWatch threads_;
  std::unique_ptr<GpuWatch> gpu_;  // null: none

  double start_, window_start_, threads_at_, times_at_, gpu_at_;  // of the last reading
  Pace fast_, gpu_pace_, gpu_report_pace_, thread_pace_, page_pace_;
  ProcessTimes window_times_, last_times_;  // at the start of the window, and at the last tick
  ProcessIo window_io_;
  Spread cores_, resident_;
};

}  // namespace stoker::observe
