// SPDX-License-Identifier: Apache-2.0
#include "stoker/device/nvml_library.h"

#include <dlfcn.h>

#include "stoker/base/fmt.h"

namespace stoker::device {

template <typename F>
void NvmlLibrary::find(F& function, const char* symbol) const {
  if (void* found = ::dlsym(library_, symbol)) {
    function = reinterpret_cast<F>(found);
  }
}

NvmlLibrary::NvmlLibrary(const std::string& path) : library_(::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) {
  if (library_ == nullptr) {
    missing = fmt::format("no NVIDIA driver was found ({} is missing)", path.substr(path.rfind('/') + 1));
    return;
  }
  int (*init)() = nullptr;
  find(init, "nvmlInit_v2");
  if (init == nullptr) {
    missing = "the NVIDIA driver is too old: its management library has no nvmlInit_v2";
    return;
  }
  if (const int status = init(); status != nvml::kSuccess) {
    missing = fmt::format("the NVIDIA driver does not answer: nvmlInit_v2 gives error {}", status);
    return;
  }
  find(shutdown_, "nvmlShutdown");
  find_all();
  list_devices();
}

NvmlLibrary::~NvmlLibrary() {
  if (shutdown_ != nullptr) {
    shutdown_();
  }
  if (library_ != nullptr) {
    ::dlclose(library_);
  }
}

void NvmlLibrary::find_all() {
  find(driver_version, "nvmlSystemGetDriverVersion");
  find(name, "nvmlDeviceGetName");
  find(uuid, "nvmlDeviceGetUUID");
  find(pci_info, "nvmlDeviceGetPciInfo_v3");
  find(memory, "nvmlDeviceGetMemoryInfo");
  find(utilization, "nvmlDeviceGetUtilizationRates");
  find(power, "nvmlDeviceGetPowerUsage");
  find(power_limit, "nvmlDeviceGetEnforcedPowerLimit");
  find(pcie_generation, "nvmlDeviceGetCurrPcieLinkGeneration");
  find(pcie_width, "nvmlDeviceGetCurrPcieLinkWidth");
  find(max_pcie_generation, "nvmlDeviceGetMaxPcieLinkGeneration");
  find(max_pcie_width, "nvmlDeviceGetMaxPcieLinkWidth");
  find(clock, "nvmlDeviceGetClockInfo");
  find(max_clock, "nvmlDeviceGetMaxClockInfo");
  find(temperature, "nvmlDeviceGetTemperature");
  find(energy, "nvmlDeviceGetTotalEnergyConsumption");
  find(throttle_reasons, "nvmlDeviceGetCurrentClocksThrottleReasons");
  find(throttle_reasons, "nvmlDeviceGetCurrentClocksEventReasons");  // its newer name
  find(nvlink_state, "nvmlDeviceGetNvLinkState");
  find(mig_mode, "nvmlDeviceGetMigMode");
  find(compute_processes, "nvmlDeviceGetComputeRunningProcesses_v3");
  find(graphics_processes, "nvmlDeviceGetGraphicsRunningProcesses_v3");
  find(gpm_support, "nvmlGpmQueryDeviceSupport");
  find(gpm_allocate, "nvmlGpmSampleAlloc");
  find(gpm_free, "nvmlGpmSampleFree");
  find(gpm_sample, "nvmlGpmSampleGet");
  find(gpm_metrics, "nvmlGpmMetricsGet");
}

void NvmlLibrary::list_devices() {
  int (*count_of)(unsigned*) = nullptr;
  int (*handle_of)(unsigned, Device*) = nullptr;
  find(count_of, "nvmlDeviceGetCount_v2");
  find(handle_of, "nvmlDeviceGetHandleByIndex_v2");
  unsigned count = 0;
  if (!ask(count_of, &count)) {
    missing = "the NVIDIA driver does not tell how many GPUs there are";
    return;
  }
  for (unsigned i = 0; i < count; ++i) {
    Device device = nullptr;
    ask(handle_of, i, &device);  // a GPU that fell off the bus keeps its place, with no figures
    devices.push_back(device);
  }
}

}  // namespace stoker::device
