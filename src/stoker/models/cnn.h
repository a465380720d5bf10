// SPDX-License-Identifier: Apache-2.0
// The default for small images (up to 96 pixels): a residual network designed for accuracy per second on a few CPU
// cores. Called by the registry.
#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "stoker/models/registry.h"

namespace stoker::models {

struct CnnShape {
  std::array<std::int64_t, 3> widths{32, 64, 128};  // channels of stem, layer1, layer2
  double logit_scale = 0.125;                       // stabilises the first steps at a high learning rate
};

inline constexpr CnnShape kCnn48{.widths = {48, 96, 192}};
inline constexpr CnnShape kCnn64{.widths = {64, 128, 256}};

// After David Page's ResNet-9 ("How to train your ResNet", 2018) and Keller Jordan's airbench (2024): every convolution
// that changes the width is followed by pooling before its norm, so that most work happens at low resolution.
// Segments stem, layer1, layer2, head.
[[nodiscard]] std::unique_ptr<Network> make_cnn(const ModelOptions& options, const CnnShape& shape = {});

}  // namespace stoker::models
