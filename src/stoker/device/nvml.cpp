// SPDX-License-Identifier: Apache-2.0
#include "stoker/device/nvml.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "stoker/device/nvml_gpm.h"
#include "stoker/device/nvml_library.h"

namespace stoker::device {
namespace {

using namespace nvml;

constexpr double kMega = 1e6, kMilli = 1e-3, kPercent = 1e-2;

// "0000:3b:00.0" and "00000000:3B:00.0" become "3B:00.0" with the domain's last four digits.
std::string normal_bus_id(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  const std::size_t colon = text.find(':');
  return colon != text.npos && colon > 4 ? text.substr(colon - 4) : text;
}

// The number that a function writes, in the unit of scale; none if it is missing or fails.
std::optional<double> number(NvmlLibrary::OfDevice function, Device device, double scale = 1) {
  unsigned value = 0;
  return ask(function, device, &value) ? std::optional(scale * value) : std::nullopt;
}

std::optional<double> number(NvmlLibrary::OfClock function, Device device, int which, double scale) {
  unsigned value = 0;
  return ask(function, device, which, &value) ? std::optional(scale * value) : std::nullopt;
}

}  // namespace

Nvml::Nvml(const std::string& library) : library_(std::make_unique<NvmlLibrary>(library)) {}
Nvml::~Nvml() = default;

const std::string& Nvml::missing() const { return library_->missing; }
int Nvml::count() const { return static_cast<int>(library_->devices.size()); }

std::string Nvml::driver() const {
  std::array<char, 96> text{};
  return ask(library_->driver_version, text.data(), static_cast<unsigned>(text.size())) ? text.data() : "";
}

std::optional<int> Nvml::find(const std::string& bus_id) const {
  for (int i = 0; i < count(); ++i) {
    PciInfo pci{};
    if (ask(library_->pci_info, library_->devices[static_cast<std::size_t>(i)], &pci) &&
        normal_bus_id(pci.bus_id) == normal_bus_id(bus_id)) {
      return i;
    }
  }
  return std::nullopt;
}

GpuFacts Nvml::facts(int gpu) const {
  const NvmlLibrary& of = *library_;
  const Device device = of.devices[static_cast<std::size_t>(gpu)];
  GpuFacts facts;
  std::array<char, 128> text{};
  facts.name = ask(of.name, device, text.data(), static_cast<unsigned>(text.size())) ? text.data() : "";
  facts.uuid = ask(of.uuid, device, text.data(), static_cast<unsigned>(text.size())) ? text.data() : "";
  if (PciInfo pci{}; ask(of.pci_info, device, &pci)) {
    facts.bus_id = pci.bus_id;
  }
  if (Memory memory{}; ask(of.memory, device, &memory)) {
    facts.memory_bytes = static_cast<double>(memory.total);
  }
  facts.power_limit_watts = number(of.power_limit, device, kMilli);
  facts.sm_clock_hz = number(of.max_clock, device, kSmClock, kMega);
  facts.memory_clock_hz = number(of.max_clock, device, kMemoryClock, kMega);
  facts.pcie_generation = number(of.max_pcie_generation, device);
  facts.pcie_width = number(of.max_pcie_width, device);
  unsigned links = 0, active = 0, answers = 0;
  for (unsigned link = 0; link < kLinks && ask(of.nvlink_state, device, link, &active); ++link) {
    links += active;
    ++answers;
  }
  if (answers > 0) {
    facts.nvlinks = links;
  }
  unsigned current = 0, pending = 0;
  facts.mig = ask(of.mig_mode, device, &current, &pending) && current != 0;
  return facts;
}

GpuPace Nvml::pace(int gpu) const {
  const NvmlLibrary& of = *library_;
  const Device device = of.devices[static_cast<std::size_t>(gpu)];
  GpuPace pace;
  if (Utilization busy{}; ask(of.utilization, device, &busy)) {
    pace.busy_share = kPercent * busy.gpu;
    pace.memory_busy_share = kPercent * busy.memory;
  }
  pace.power_watts = number(of.power, device, kMilli);
  pace.sm_clock_hz = number(of.clock, device, kSmClock, kMega);
  pace.memory_clock_hz = number(of.clock, device, kMemoryClock, kMega);
  if (unsigned long long bits = 0; ask(of.throttle_reasons, device, &bits)) {
    pace.throttle = bits;
  }
  return pace;
}

GpuState Nvml::state(int gpu) const {
  const NvmlLibrary& of = *library_;
  const Device device = of.devices[static_cast<std::size_t>(gpu)];
  GpuState state;
  if (Memory memory{}; ask(of.memory, device, &memory)) {
    state.memory_used_bytes = static_cast<double>(memory.used);
  }
  state.temperature_celsius = number(of.temperature, device, kGpuSensor, 1);
  if (unsigned long long millijoules = 0; ask(of.energy, device, &millijoules)) {
    state.energy_joules = kMilli * static_cast<double>(millijoules);
  }
  state.pcie_generation = number(of.pcie_generation, device);
  state.pcie_width = number(of.pcie_width, device);
  return state;
}

std::vector<GpuHolder> Nvml::holders(int gpu) const {
  std::vector<GpuHolder> result;
  for (const auto& list : {library_->compute_processes, library_->graphics_processes}) {
    std::vector<Process> found(64);
    unsigned count = 64;
    int status =
        list == nullptr ? kNotSupported : list(library_->devices[static_cast<std::size_t>(gpu)], &count, found.data());
    if (status == kInsufficientSize) {
      count += 64;  // more processes may start in the meantime
      found.resize(count);
      status = list(library_->devices[static_cast<std::size_t>(gpu)], &count, found.data());
    }
    found.resize(status == kSuccess ? std::min<std::size_t>(count, found.size()) : 0);
    for (const Process& process : found) {
      const bool told = process.used_memory != ~0ULL;
      if (std::ranges::find(result, process.pid, &GpuHolder::pid) == result.end()) {
        result.push_back({process.pid, told ? static_cast<std::int64_t>(process.used_memory) : -1});
      }
    }
  }
  return result;
}

std::unique_ptr<GpuActivity> Nvml::activity(int gpu) const {
  return gpm_activity(*library_, library_->devices[static_cast<std::size_t>(gpu)]);
}

const Nvml& machine_nvml() {
  static const Nvml* const library = new Nvml;  // never freed: a call that hangs in the driver may outlive the run
  return *library;
}

}  // namespace stoker::device
