// SPDX-License-Identifier: Apache-2.0
#include "stoker/device/gpu_process.h"

#include <algorithm>

#include "stoker/device/kernel_file.h"

namespace stoker::device {
namespace {

namespace fs = std::filesystem;

constexpr const char* kHostPids = "pid:[4026531836]";  // PROC_PID_INIT_INO of the kernel: the first namespace

bool is_dead(std::string_view stat) {
  const std::size_t name_end = stat.rfind(')');
  return name_end != stat.npos && stat.substr(name_end).starts_with(") Z");
}

}  // namespace

const std::vector<std::string>& gpu_files() {
  static const std::vector<std::string> prefixes = {"/dev/nvidia"};
  return prefixes;
}

std::optional<bool> has_open(int pid, const std::vector<std::string>& prefixes, const fs::path& root) {
  std::error_code error;
  fs::directory_iterator it(root / "proc" / std::to_string(pid) / "fd", error);
  for (; !error && it != fs::directory_iterator(); it.increment(error)) {
    std::error_code gone;
    const std::string target = fs::read_symlink(it->path(), gone).native();
    if (std::ranges::any_of(prefixes, [&](const std::string& prefix) { return target.starts_with(prefix); })) {
      return true;
    }
  }
  return error ? std::nullopt : std::optional(false);
}

std::optional<int> local_pid(unsigned nvml_pid, const std::vector<std::string>& devices, const fs::path& root) {
  const int pid = static_cast<int>(nvml_pid);
  const std::string stat = read_kernel_file(root / "proc" / std::to_string(nvml_pid) / "stat");
  if (stat.empty()) {
    return std::nullopt;
  }
  std::error_code error;
  const bool on_host = fs::read_symlink(root / "proc/self/ns/pid", error) == kHostPids;
  return on_host || is_dead(stat) || has_open(pid, devices, root).value_or(false) ? std::optional(pid) : std::nullopt;
}

}  // namespace stoker::device
