// SPDX-License-Identifier: Apache-2.0
// Lists other processes on a GPU with NVIDIA's management library (libnvidia-ml.so.1, part of the driver), which is
// loaded on demand, not linked. Part of libstoker_cuda; used by the CUDA backend. Thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace stoker::device {

struct GpuProcess {
  unsigned pid = 0;
  std::string name;         // from the kernel; empty if it is in another pid namespace
  std::int64_t bytes = -1;  // of GPU memory; -1 if unknown
};

// Other compute processes on the GPU with that PCI bus id ("00000000:3B:00.0"), without this process. Empty if there
// are none or if the library is missing.
[[nodiscard]] std::vector<GpuProcess> gpu_processes(const std::string& pci_bus_id);
// "pid 4711 (python3) holds 40.1 GiB".
[[nodiscard]] std::string describe(const GpuProcess& process);

}  // namespace stoker::device
