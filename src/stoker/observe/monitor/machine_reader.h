// SPDX-License-Identifier: Apache-2.0
// Figures of the whole machine: busy cores, cores that a hypervisor gave to others, free memory, network traffic. Used
// by the monitor and `stoker top`. One thread.
#pragma once

#include <filesystem>
#include <optional>
#include <string_view>

#include "stoker/device/kernel_file.h"
#include "stoker/observe/monitor/window.h"

namespace stoker::observe {

class MachineWatch {
 public:
  // root: prefix of /proc.
  explicit MachineWatch(const std::filesystem::path& root);

  // Figures since the last call (or the constructor), `seconds` ago: machine.busy_cores and others.
  void report(double seconds, Figures& figures);

 private:
  struct Counters {
    std::optional<double> busy_seconds, stolen_seconds;  // of all cores
    std::optional<double> received_bytes, sent_bytes;    // over all interfaces but loopback
  };
  Counters read();

  device::KernelFile stat_, memory_, network_;
  Counters before_;
};

}  // namespace stoker::observe
