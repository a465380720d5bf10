// SPDX-License-Identifier: Apache-2.0
// A perceptron with two hidden layers: the smallest trainable network. Called by the registry.
#pragma once

#include <cstdint>
#include <memory>

#include "stoker/models/registry.h"

namespace stoker::models {

// Segments layer1, layer2, head. The input is flattened: its size is fixed to channels * image_size^2.
[[nodiscard]] std::unique_ptr<Network> make_mlp(const ModelOptions& options, std::int64_t hidden = 256);

}  // namespace stoker::models
