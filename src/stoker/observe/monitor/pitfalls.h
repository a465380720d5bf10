// SPDX-License-Identifier: Apache-2.0
// What makes figures of a machine misleading, or programs slow, in containers and virtual machines: stated where it is
// so. Used by the monitor, `stoker ps` and `stoker top`. Thread-safe: no state.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace stoker::observe {

// Bytes of a file system; none if there is none at that path.
[[nodiscard]] std::optional<std::int64_t> filesystem_bytes(const std::filesystem::path& path);

struct Surroundings {
  int affinity = 1;                               // cores that the process sees (nproc)
  double quota = 0;                               // cores that its cgroup allows; 0: all
  std::optional<std::int64_t> shared_bytes = {};  // size of /dev/shm
  bool wsl = false;                               // Windows Subsystem for Linux
  std::vector<std::string> divided_gpus = {};     // names of GPUs in MIG mode
  std::vector<int> notebooks = {};                // pids of notebook kernels that have a GPU open
};
// root: prefix of /proc, /sys and /dev. GPUs and notebooks are the caller's.
[[nodiscard]] Surroundings surroundings(const std::filesystem::path& root = "/");

// One sentence for each pitfall, with what to do.
[[nodiscard]] std::vector<std::string> pitfalls(const Surroundings& around);

}  // namespace stoker::observe
