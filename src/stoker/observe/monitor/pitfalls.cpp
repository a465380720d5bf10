// SPDX-License-Identifier: Apache-2.0
#include "stoker/observe/monitor/pitfalls.h"

#include <sys/statvfs.h>

#include "stoker/base/fmt.h"
#include "stoker/device/cpu_quota.h"
#include "stoker/device/kernel_file.h"

namespace stoker::observe {
namespace {

constexpr std::int64_t kSmallShared = std::int64_t{512} << 20;  // Docker gives 64 MiB

bool is_wsl(std::string_view version) {
  return version.find("microsoft") != version.npos || version.find("Microsoft") != version.npos;
}

}  // namespace

std::optional<std::int64_t> filesystem_bytes(const std::filesystem::path& path) {
  struct statvfs found {};
  if (::statvfs(path.c_str(), &found) != 0) {
    return std::nullopt;
  }
  return static_cast<std::int64_t>(found.f_blocks) * static_cast<std::int64_t>(found.f_frsize);
}

Surroundings surroundings(const std::filesystem::path& root) {
  const device::CpuQuota cpu = device::cpu_quota(root);
  return {cpu.affinity,
          cpu.quota,
          filesystem_bytes(root / "dev/shm"),
          is_wsl(device::read_kernel_file(root / "proc/version")),
          {},
          {}};
}

std::vector<std::string> pitfalls(const Surroundings& around) {
  std::vector<std::string> result;
  if (around.quota > 0 && around.quota < around.affinity) {
    result.push_back(fmt::format(
        "the cgroup allows {:.3g} cores, but nproc shows {}: programs that count cores start too many threads, and the "
        "kernel stops all of them when the quota is used up; give the container more cores, or set OMP_NUM_THREADS for "
        "other programs (Stoker counts by the quota)",
        around.quota, around.affinity));
  }
  if (around.shared_bytes && *around.shared_bytes < kSmallShared) {
    result.push_back(fmt::format(
        "/dev/shm has {:.0f} MiB: worker processes of PyTorch's DataLoader and NCCL may run out of it (Bus error); "
        "start the container with --shm-size=8g or --ipc=host (Stoker's loader uses threads and needs none)",
        static_cast<double>(*around.shared_bytes) / 0x1p20));
  }
  if (around.wsl) {
    result.emplace_back(
        "this is WSL: files below /mnt are read through Windows, many times slower than the Linux disk, and NVML lacks "
        "processes and some figures of the GPU; keep data on the Linux disk");
  }
  for (const std::string& name : around.divided_gpus) {
    result.push_back(fmt::format(
        "{} is divided into instances (MIG): NVML tells no utilisation per instance, so it is missing; power, clocks "
        "and temperature are those of the whole GPU",
        name));
  }
  for (const int pid : around.notebooks) {
    result.push_back(
        fmt::format("process {} is the kernel of a notebook and has a GPU open: it keeps the GPU memory of what ran in "
                    "it, even when "
                    "the cells have finished; restart the kernel to free it",
                    pid));
  }
  return result;
}

}  // namespace stoker::observe
