// SPDX-License-Identifier: Apache-2.0
#include "stoker/device/gpu_holders.h"

#include <unistd.h>

#include "stoker/base/file.h"
#include "stoker/base/fmt.h"
#include "stoker/device/backend.h"
#include "stoker/device/gpu_process.h"
#include "stoker/device/kernel_file.h"

namespace stoker::device {

std::vector<std::string> busy_processes(c10::Device device) {
  std::vector<std::string> words;
  const std::string bus_id = backend_for(device).bus_id(device);
  const auto gpu = bus_id.empty() ? std::nullopt : machine_nvml().find(bus_id);
  for (const GpuHolder& holder : gpu ? machine_nvml().holders(*gpu) : std::vector<GpuHolder>()) {
    if (local_pid(holder.pid) != ::getpid()) {
      words.push_back(describe(holder));
    }
  }
  return words;
}

std::string describe(const GpuHolder& holder, const std::filesystem::path& root) {
  const std::string held = holder.bytes < 0 ? "an unknown amount of memory"
                                            : fmt::format("{:.1f} GiB", static_cast<double>(holder.bytes) / 0x1p30);
  if (!local_pid(holder.pid, gpu_files(), root)) {
    return fmt::format("pid {} of the host (not visible from here) holds {}", holder.pid, held);
  }
  std::string name = read_kernel_file(root / "proc" / std::to_string(holder.pid) / "comm");
  name = name.empty() ? name : fmt::format(" ({})", printable(name.substr(0, name.size() - 1)));
  return fmt::format("pid {}{} holds {}", holder.pid, name, held);
}

}  // namespace stoker::device
