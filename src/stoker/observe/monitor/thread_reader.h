// SPDX-License-Identifier: Apache-2.0
// The threads of a process by the work that their names say: time on a core, time in the queue for one, and switches.
// Threads that begin or end between two readings are counted as far as they were seen. Used by the monitor. One thread.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>

#include "stoker/observe/monitor/process_reader.h"
#include "stoker/observe/monitor/window.h"

namespace stoker::observe {

// Counters since the thread started.
struct ThreadTimes {
  std::string group;
  char state = '?';
  double cpu_seconds = 0, system_seconds = 0;   // the second is counted in ticks of the kernel, 10 ms
  std::optional<double> waited_seconds;         // ready to run, without a core
  std::optional<double> switches, preemptions;  // voluntary and involuntary
};

// The threads of the process in that folder (/proc/self), by thread id.
[[nodiscard]] std::map<int, ThreadTimes> read_threads(const std::filesystem::path& process);

// "loader3" and "loader 12" are "loader"; the main thread is "main", other threads of that name are "unnamed". What a
// figure's name cannot hold becomes '_'.
[[nodiscard]] std::string thread_group(std::string_view name, std::string_view process_name, bool main);

class ThreadWatch {
 public:
  explicit ThreadWatch(std::filesystem::path process) : process_(std::move(process)), before_(read_threads(process_)) {}

  // Figures per group since the last call, which was `seconds` ago: threads.loader.cpu_cores and others. Groups that
  // used less than a thousandth of a core are left out.
  void report(double seconds, Figures& figures);

 private:
  std::filesystem::path process_;
  std::map<int, ThreadTimes> before_;
};

}  // namespace stoker::observe
