// SPDX-License-Identifier: Apache-2.0
// The network of the tabular task: numbers and embedded categories through a few hidden layers. Made by tasks/.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "stoker/models/network.h"

namespace stoker::models {

struct TabularMlpOptions {
  std::int64_t numbers = 0;              // width of the number input
  std::vector<std::int64_t> categories;  // rows of each category's embedding: its values and one for unknown values
  std::int64_t hidden = 256;
  int layers = 3;      // hidden ones, at least 1
  double dropout = 0;  // after each of them
  std::int64_t outputs = 1;
  std::uint64_t seed = 0;
};

// Inputs: numbers float [N, numbers], categories int64 [N, categories]. Output [N, outputs]. A category of r rows is
// embedded in min(50, ceil(1.6 r^0.56)) numbers, fast.ai's rule (Howard and Gugger, 2020).
[[nodiscard]] std::unique_ptr<Network> make_tabular_mlp(const TabularMlpOptions& options);

}  // namespace stoker::models
