// SPDX-License-Identifier: Apache-2.0
// NVIDIA's management library (libnvidia-ml.so.1, part of the driver), loaded on demand and not linked. Every function
// of it may be missing or fail: then the figure is missing. Used by the monitor, `stoker ps` and the checks before a
// training. Every member may be called from any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace stoker::device {

struct NvmlLibrary;  // nvml_library.h

// What does not change.
struct GpuFacts {
  std::string name, bus_id, uuid;  // "NVIDIA H100 80GB HBM3", "00000000:3B:00.0", "GPU-..."; empty if unknown
  std::optional<double> memory_bytes, power_limit_watts, sm_clock_hz, memory_clock_hz;  // the highest
  std::optional<double> pcie_generation, pcie_width;                                    // the highest
  std::optional<double> nvlinks;                                                        // active ones
  bool mig = false;  // divided into instances: some figures are missing, others are those of the whole GPU
};

// Read several times a second.
struct GpuPace {
  std::optional<double> busy_share;         // of the time, in which a kernel ran: not how much of the GPU it used
  std::optional<double> memory_busy_share;  // of the time, in which memory was read or written
  std::optional<double> power_watts, sm_clock_hz, memory_clock_hz;
  std::optional<std::uint64_t> throttle;  // bits of nvml::kThrottleReasons
};

struct GpuState {
  std::optional<double> memory_used_bytes, temperature_celsius;
  std::optional<double> energy_joules;                // since the driver was loaded
  std::optional<double> pcie_generation, pcie_width;  // an idle link slows down
};

struct GpuHolder {
  unsigned pid = 0;
  std::int64_t bytes = -1;  // of GPU memory; -1 if unknown
};

// What happened on a GPU between two looks, from its counters (GPM: Hopper and later).
class GpuActivity {
 public:
  virtual ~GpuActivity() = default;
  // Figures since the last call, such as {"sm_busy_share", 0.61}; none in the first call or if the GPU refuses.
  virtual std::vector<std::pair<std::string, double>> since_last() = 0;
};

class Nvml {
 public:
  // library: a name for dlopen(), or a path.
  explicit Nvml(const std::string& library = "libnvidia-ml.so.1");
  ~Nvml();
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  // Why there are no figures at all; empty: there are.
  [[nodiscard]] const std::string& missing() const;
  [[nodiscard]] std::string driver() const;  // "580.65.06"; empty if unknown
  [[nodiscard]] int count() const;           // GPUs
  // The GPU with that PCI bus id, with any number of digits for its domain.
  [[nodiscard]] std::optional<int> find(const std::string& bus_id) const;

  // gpu: below count().
  [[nodiscard]] GpuFacts facts(int gpu) const;
  [[nodiscard]] GpuPace pace(int gpu) const;
  [[nodiscard]] GpuState state(int gpu) const;
  // Processes with memory on the GPU; pids of the host, even in a container.
  [[nodiscard]] std::vector<GpuHolder> holders(int gpu) const;
  // Null if the GPU has no such counters. Must not outlive this object.
  [[nodiscard]] std::unique_ptr<GpuActivity> activity(int gpu) const;

 private:
  std::unique_ptr<NvmlLibrary> library_;
};

// The machine's library, initialised at the first call, for the rest of the process.
[[nodiscard]] const Nvml& machine_nvml();

}  // namespace stoker::device
