// SPDX-License-Identifier: Apache-2.0
// The wheel has no nvml.h: the five functions and one struct are declared here as in NVIDIA's NVML API reference.
#include "stoker/device/nvml_cuda.h"

#include <dlfcn.h>
#include <unistd.h>

#include <fstream>

#include "stoker/base/fmt.h"

namespace stoker::device {
namespace {

using NvmlDevice = void*;
struct NvmlProcess {  // nvmlProcessInfo_t of nvmlDeviceGetComputeRunningProcesses_v3
  unsigned pid;
  unsigned long long used_gpu_memory;  // bytes; all bits set if unknown
  unsigned gpu_instance;
  unsigned compute_instance;
};
constexpr int kSuccess = 0;           // NVML_SUCCESS
constexpr int kInsufficientSize = 7;  // NVML_ERROR_INSUFFICIENT_SIZE

// The library during a query: initialised in the constructor, shut down in the destructor.
class Nvml {
 public:
  Nvml() : library_(::dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL)) {
    if (library_ == nullptr) {
      return;
    }
    const auto init = function<int()>("nvmlInit_v2");
    shutdown_ = function<int()>("nvmlShutdown");
    handle_ = function<int(const char*, NvmlDevice*)>("nvmlDeviceGetHandleByPciBusId_v2");
    processes_ = function<int(NvmlDevice, unsigned*, NvmlProcess*)>("nvmlDeviceGetComputeRunningProcesses_v3");
    usable_ = init && shutdown_ && handle_ && processes_ && init() == kSuccess;
  }
  ~Nvml() {
    if (usable_) {
      shutdown_();
    }
    if (library_ != nullptr) {
      ::dlclose(library_);
    }
  }
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  std::vector<NvmlProcess> processes(const std::string& pci_bus_id) const {
    NvmlDevice device = nullptr;
    if (!usable_ || handle_(pci_bus_id.c_str(), &device) != kSuccess) {
      return {};
    }
    unsigned count = 64;
    std::vector<NvmlProcess> found(count);
    int status = processes_(device, &count, found.data());
    if (status == kInsufficientSize) {
      count += 64;  // more processes may start in the meantime
      found.resize(count);
      status = processes_(device, &count, found.data());
    }
    found.resize(status == kSuccess ? count : 0);
    return found;
  }

 private:
  template <typename F>
  F* function(const char* name) const {
    return reinterpret_cast<F*>(::dlsym(library_, name));
  }

  void* library_;
  int (*shutdown_)() = nullptr;
  int (*handle_)(const char*, NvmlDevice*) = nullptr;
  int (*processes_)(NvmlDevice, unsigned*, NvmlProcess*) = nullptr;
  bool usable_ = false;
};

std::string process_name(unsigned pid) {
  std::ifstream file(fmt::format("/proc/{}/comm", pid));
  std::string name;
  std::getline(file, name);
  return name;
}

}  // namespace

std::vector<GpuProcess> gpu_processes(const std::string& pci_bus_id) {
  std::vector<GpuProcess> result;
  for (const NvmlProcess& process : Nvml().processes(pci_bus_id)) {
    if (process.pid != static_cast<unsigned>(::getpid())) {
      const bool told = process.used_gpu_memory != ~0ULL;
      result.push_back(
          {process.pid, process_name(process.pid), told ? static_cast<std::int64_t>(process.used_gpu_memory) : -1});
    }
  }
  return result;
}

std::string describe(const GpuProcess& process) {
  const std::string name = process.name.empty() ? "" : fmt::format(" ({})", process.name);
  const std::string held = process.bytes < 0 ? "an unknown amount of memory"
                                             : fmt::format("{:.1f} GiB", static_cast<double>(process.bytes) / 0x1p30);
  return fmt::format("pid {}{} holds {}", process.pid, name, held);
}

}  // namespace stoker::device
