// SPDX-License-Identifier: Apache-2.0
// The functions of libnvidia-ml.so.1, found by name; those that this driver lacks are null. Used by nvml.cpp and
// nvml_gpm.cpp. Immutable after construction.
#pragma once

#include <string>
#include <vector>

#include "stoker/device/nvml_abi.h"

namespace stoker::device {

// Calls a function; false if it is missing or fails.
template <typename... Parameters, typename... Arguments>
bool ask(int (*function)(Parameters...), Arguments... arguments) {
  return function != nullptr && function(arguments...) == nvml::kSuccess;
}

struct NvmlLibrary {
  explicit NvmlLibrary(const std::string& path);
  ~NvmlLibrary();
  NvmlLibrary(const NvmlLibrary&) = delete;
  NvmlLibrary& operator=(const NvmlLibrary&) = delete;

  using Device = nvml::Device;
  using OfDevice = int (*)(Device, unsigned*);
  using OfClock = int (*)(Device, int, unsigned*);
  using Text = int (*)(Device, char*, unsigned);
  using Processes = int (*)(Device, unsigned*, nvml::Process*);

  std::string missing;  // why there are no figures; empty: there are
  std::vector<Device> devices;

  int (*driver_version)(char*, unsigned) = nullptr;
  Text name = nullptr, uuid = nullptr;
  int (*pci_info)(Device, nvml::PciInfo*) = nullptr;
  int (*memory)(Device, nvml::Memory*) = nullptr;
  int (*utilization)(Device, nvml::Utilization*) = nullptr;
  OfDevice power = nullptr, power_limit = nullptr;  // milliwatts
  OfDevice pcie_generation = nullptr, pcie_width = nullptr, max_pcie_generation = nullptr, max_pcie_width = nullptr;
  OfClock clock = nullptr, max_clock = nullptr;          // MHz
  OfClock temperature = nullptr;                         // degrees Celsius
  int (*energy)(Device, unsigned long long*) = nullptr;  // millijoules
  int (*throttle_reasons)(Device, unsigned long long*) = nullptr;
  int (*nvlink_state)(Device, unsigned, unsigned*) = nullptr;
  int (*mig_mode)(Device, unsigned*, unsigned*) = nullptr;
  Processes compute_processes = nullptr, graphics_processes = nullptr;

  int (*gpm_support)(Device, nvml::GpmSupport*) = nullptr;
  int (*gpm_allocate)(nvml::Sample*) = nullptr;
  int (*gpm_free)(nvml::Sample) = nullptr;
  int (*gpm_sample)(Device, nvml::Sample) = nullptr;
  int (*gpm_metrics)(nvml::GpmMetrics*) = nullptr;

 private:
  template <typename F>
  void find(F& function, const char* name) const;
  void find_all();
  void list_devices();

  void* library_ = nullptr;
  int (*shutdown_)() = nullptr;
};

}  // namespace stoker::device
