// SPDX-License-Identifier: Apache-2.0
#include "stoker/observe/monitor/gpu_watch.h"

namespace stoker::observe {

using device::nvml::kThrottleReasons;

GpuWatch::GpuWatch(const device::Nvml& nvml, int gpu, std::string name)
    : nvml_(nvml),
      gpu_(gpu),
      name_(std::move(name)),
      facts_(nvml.facts(gpu)),
      activity_(nvml.activity(gpu)),
      energy_(nvml.state(gpu).energy_joules) {
  if (activity_) {
    activity_->since_last();
  }
}

void GpuWatch::sample() {
  const device::GpuPace pace = nvml_.pace(gpu_);
  window_.busy.add(pace.busy_share);
  window_.memory_busy.add(pace.memory_busy_share);
  window_.power.add(pace.power_watts);
  window_.sm_clock.add(pace.sm_clock_hz);
  window_.memory_clock.add(pace.memory_clock_hz);
  if (!pace.throttle) {
    return;
  }
  bool any = false;
  for (std::size_t i = 0; i < std::size(kThrottleReasons); ++i) {
    const bool held = (*pace.throttle & kThrottleReasons[i].bit) != 0;
    window_.reasons[i].add(held ? 1 : 0);
    any |= held;
  }
  window_.throttled.add(any ? 1 : 0);
}

// Reasons that never held are left out where the share of all is known.
void GpuWatch::report_throttling(Figures& figures) const {
  figures.put(name_ + ".throttled_share", window_.throttled.mean());
  for (std::size_t i = 0; i < std::size(kThrottleReasons); ++i) {
    const auto share = window_.reasons[i].mean();
    figures.put(name_ + ".throttled." + kThrottleReasons[i].name + "_share",
                share.value_or(0) > 0 ? share : std::nullopt);
  }
}

void GpuWatch::report_state(double seconds, Figures& figures) {
  const device::GpuState state = nvml_.state(gpu_);
  const auto joules = rate(energy_, state.energy_joules, seconds);
  energy_ = state.energy_joules;
  figures.put(name_ + ".energy_joules", joules ? std::optional(*joules * seconds) : std::nullopt);
  figures.put(name_ + ".temperature_celsius", state.temperature_celsius);
  if (facts_.mig) {
    return;  // memory and link are those of the whole GPU
  }
  figures.put(name_ + ".memory_used_bytes", state.memory_used_bytes);
  figures.put(name_ + ".memory_bytes", facts_.memory_bytes);
  if (window_.busy.highest().value_or(0) > 0) {  // an idle link slows down
    figures.put(name_ + ".pcie_generation", state.pcie_generation);
    figures.put(name_ + ".pcie_generation_max", facts_.pcie_generation);
    figures.put(name_ + ".pcie_width", state.pcie_width);
    figures.put(name_ + ".pcie_width_max", facts_.pcie_width);
  }
  figures.put(name_ + ".nvlinks", facts_.nvlinks);
}

void GpuWatch::report(double seconds, Figures& figures) {
  figures.put(name_ + ".busy_share", window_.busy.mean());
  figures.put(name_ + ".memory_busy_share", window_.memory_busy.mean());
  figures.put(name_ + ".power_watts", window_.power.mean());
  figures.put(name_ + ".power_watts_max", window_.power.highest());
  figures.put(name_ + ".power_limit_watts", facts_.power_limit_watts);
  figures.put(name_ + ".sm_clock_hz", window_.sm_clock.mean());
  figures.put(name_ + ".sm_clock_hz_min", window_.sm_clock.lowest());
  figures.put(name_ + ".sm_clock_limit_hz", facts_.sm_clock_hz);
  figures.put(name_ + ".memory_clock_hz", window_.memory_clock.mean());
  report_throttling(figures);
  report_state(seconds, figures);
  if (activity_ && !facts_.mig) {
    for (const auto& [what, value] : activity_->since_last()) {
      figures.put(name_ + "." + what, value);
    }
  }
  window_ = {};
}

}  // namespace stoker::observe
