// SPDX-License-Identifier: Apache-2.0
// Figures of one GPU over a window, from NVML. Used by the monitor and `stoker top`. One thread.
#pragma once

#include <array>
#include <iterator>
#include <memory>
#include <string>

#include "stoker/device/nvml.h"
#include "stoker/device/nvml_abi.h"
#include "stoker/observe/monitor/window.h"

namespace stoker::observe {

class GpuWatch {
 public:
  // nvml must outlive the watch. name: the start of the figures' names, "gpu0".
  GpuWatch(const device::Nvml& nvml, int gpu, std::string name);

  // A sample of what changes fast; several per window.
  void sample();
  // Figures of the samples since the last call, and of what changes slowly; the window was `seconds` long.
  void report(double seconds, Figures& figures);
  [[nodiscard]] const device::GpuFacts& facts() const { return facts_; }

 private:
  struct Window {
    Spread busy, memory_busy, power, sm_clock, memory_clock;
    std::array<Spread, std::size(device::nvml::kThrottleReasons)> reasons;  // 1: the reason held
    Spread throttled;
  };
  void report_throttling(Figures& figures) const;
  void report_state(double seconds, Figures& figures);

  const device::Nvml& nvml_;
  int gpu_;
  std::string name_;
  device::GpuFacts facts_;
  std::unique_ptr<device::GpuActivity> activity_;
  Window window_;
  std::optional<double> energy_;  // at the last report
};

}  // namespace stoker::observe
