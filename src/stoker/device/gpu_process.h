// SPDX-License-Identifier: Apache-2.0
// Which process of this machine, or of this container, NVML means by a pid: it counts on the host, so that in a
// container the same number may be another process. Used by the checks before a training, `stoker ps` and `stoker top`.
// Thread-safe: no state.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace stoker::device {

// Prefixes of the device files that whoever uses a GPU has open.
[[nodiscard]] const std::vector<std::string>& gpu_files();

// Whether the process has a file open whose path begins with one of these; none if its files cannot be listed.
// root: prefix of /proc.
[[nodiscard]] std::optional<bool> has_open(int pid, const std::vector<std::string>& prefixes,
                                           const std::filesystem::path& root = "/");

// The pid here of a process that NVML lists as a holder; none if it cannot be seen from here. Outside of the host's pid
// namespace a number counts only if its process is dead, or surely has a GPU open.
[[nodiscard]] std::optional<int> local_pid(unsigned nvml_pid, const std::vector<std::string>& devices = gpu_files(),
                                           const std::filesystem::path& root = "/");

}  // namespace stoker::device
