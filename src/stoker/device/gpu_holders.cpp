// SPDX-License-Identifier: Apache-2.0
#include "stoker/device/gpu_holders.h"

#include <unistd.h>

#include <algorithm>
#include <iterator>

#include "stoker/base/file.h"
#include "stoker/base/fmt.h"
#include "stoker/device/backend.h"
#include "stoker/device/gpu_process.h"
#include "stoker/device/kernel_file.h"

namespace stoker::device {

namespace {

std::string amount(std::int64_t bytes) {
  return bytes < 0 ? "an unknown amount of memory" : fmt::format("{:.1f} GiB", static_cast<double>(bytes) / 0x1p30);
}

}  // namespace

std::vector<std::string> busy_processes(c10::Device device, bool we_hold) {
  const std::string bus_id = backend_for(device).bus_id(device);
  const auto gpu = bus_id.empty() ? std::nullopt : machine_nvml().find(bus_id);
  return gpu ? describe_others(machine_nvml().holders(*gpu), ::getpid(), we_hold) : std::vector<std::string>();
}

std::vector<std::string> describe_others(const std::vector<GpuHolder>& holders, int own, bool we_hold,
                                         const std::filesystem::path& root) {
  std::vector<std::string> words;
  std::vector<GpuHolder> hidden;
  for (const GpuHolder& holder : holders) {
    const auto pid = local_pid(holder.pid, gpu_files(), root);
    if (pid == own) {
      we_hold = false;  // listed under its own number
    } else if (pid) {
      words.push_back(describe(holder, root));
    } else {
      hidden.push_back(holder);
    }
  }
  if (!we_hold) {
    std::ranges::transform(hidden, std::back_inserter(words),
                           [&](const GpuHolder& holder) { return describe(holder, root); });
  } else if (hidden.size() > 1) {  // a single one is this process
    std::int64_t bytes = 0;
    for (const GpuHolder& holder : hidden) {
      bytes = holder.bytes < 0 || bytes < 0 ? -1 : bytes + holder.bytes;
    }
    words.push_back(
        fmt::format("{} processes of the host, this one among them, hold {}", hidden.size(), amount(bytes)));
  }
  return words;
}

std::string describe(const GpuHolder& holder, const std::filesystem::path& root) {
  const std::string held = amount(holder.bytes);
  if (!local_pid(holder.pid, gpu_files(), root)) {
    return fmt::format("pid {} of the host (not visible from here) holds {}", holder.pid, held);
  }
  std::string name = read_kernel_file(root / "proc" / std::to_string(holder.pid) / "comm");
  name = name.empty() ? name : fmt::format(" ({})", printable(name.substr(0, name.size() - 1)));
  return fmt::format("pid {}{} holds {}", holder.pid, name, held);
}

}  // namespace stoker::device
