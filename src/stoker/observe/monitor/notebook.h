// SPDX-License-Identifier: Apache-2.0
// Kernels of notebooks (Jupyter, IPython): they live as long as the notebook is open and keep the GPU memory of what
// ran in them. Used by the monitor and `stoker ps`. Thread-safe: no state.
#pragma once

#include <filesystem>
#include <optional>

namespace stoker::observe {

// By its arguments, or by the variable that Jupyter gives to the kernels it starts. root: prefix of /proc.
[[nodiscard]] bool is_notebook_kernel(int pid, const std::filesystem::path& root = "/");

// The kernel that this process descends from; none if it was not started from a notebook.
[[nodiscard]] std::optional<int> notebook_above(const std::filesystem::path& root = "/");

}  // namespace stoker::observe
