// SPDX-License-Identifier: Apache-2.0
// What the kernel tells of a process of this machine. Without torch; no state.
#pragma once

#include <string>
#include <vector>

namespace stoker::parallel {

// The fields of /proc/PID/stat after the process's name: the first is its state, field 3 of man proc_pid_stat. Empty:
// there is no such process, or it is not visible.
[[nodiscard]] std::vector<std::string> process_stat(const std::string& process);

}  // namespace stoker::parallel
