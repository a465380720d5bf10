// SPDX-License-Identifier: Apache-2.0
// Tensors grouped by dtype, as the _foreach and fused operators need for speed. Used by optim and precision.
// Thread-safe: no state.
#pragma once

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace stoker::core {

using DtypeGroups = std::vector<std::pair<at::ScalarType, std::vector<at::Tensor>>>;

// The defined ones, groups and members in order of first appearance.
[[nodiscard]] inline DtypeGroups by_dtype(const std::vector<at::Tensor>& tensors) {
  DtypeGroups groups;
  for (const at::Tensor& tensor : tensors) {
    if (!tensor.defined()) {
      continue;
    }
    auto group = std::ranges::find(groups, tensor.scalar_type(), [](const auto& each) { return each.first; });
    if (group == groups.end()) {
      groups.push_back({tensor.scalar_type(), {}});
      group = groups.end() - 1;
    }
    group->second.push_back(tensor);
  }
  return groups;
}

}  // namespace stoker::core
