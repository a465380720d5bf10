// SPDX-License-Identifier: Apache-2.0
#include "stoker/observe/monitor/notebook.h"

#include <string>
#include <string_view>

#include "stoker/device/kernel_file.h"
#include "stoker/observe/monitor/process_reader.h"

namespace stoker::observe {
namespace {

constexpr int kDeepest = 64;        // processes above this one
constexpr int kFirstArguments = 4;  // python -Xoption -m ipykernel_launcher
constexpr std::string_view kJupyter = "JPY_PARENT_PID=";

// Calls found(text) for each of the texts, which end with NUL bytes, until it says true.
template <typename Found>
bool any_text(std::string_view texts, const Found& found) {
  while (!texts.empty()) {
    const std::size_t end = std::min(texts.find('\0'), texts.size());
    if (found(texts.substr(0, end))) {
      return true;
    }
    texts.remove_prefix(std::min(end + 1, texts.size()));
  }
  return false;
}

bool is_kernel_program(std::string_view argument) {
  const std::string_view name = argument.substr(argument.rfind('/') + 1);
  return name.starts_with("ipykernel") || argument.find("/ipykernel") != argument.npos || name == "ipython" ||
         name == "ipython3" || name.starts_with("colab_kernel_launcher");
}

int parent_of(const std::filesystem::path& process) {
  return static_cast<int>(parse_stat(device::read_kernel_file(process / "stat")).parent.value_or(0));
}

}  // namespace

bool is_notebook_kernel(int pid, const std::filesystem::path& root) {
  const std::filesystem::path process = root / "proc" / std::to_string(pid);
  int place = 0;
  if (any_text(device::read_kernel_file(process / "cmdline"),
               [&](std::string_view argument) { return place++ < kFirstArguments && is_kernel_program(argument); })) {
    return true;
  }
  const int parent = parent_of(process);  // the children of a kernel have the variable, too
  return any_text(device::read_kernel_file(process / "environ"), [&](std::string_view variable) {
    return parent > 1 && variable.starts_with(kJupyter) &&
           device::leading_number(variable.substr(kJupyter.size())) == parent;
  });
}

std::optional<int> notebook_above(const std::filesystem::path& root) {
  int pid = parent_of(root / "proc/self");
  for (int i = 0; pid > 1 && i < kDeepest; ++i) {
    if (is_notebook_kernel(pid, root)) {
      return pid;
    }
    pid = parent_of(root / "proc" / std::to_string(pid));
  }
  return std::nullopt;
}

}  // namespace stoker::observe
