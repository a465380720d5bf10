// SPDX-License-Identifier: Apache-2.0
// ResNet-18, -34 and -50 (He et al., 2015; stride in the 3x3 convolution, as in torchvision's v1.5), with torchvision's
// parameter names and arithmetic, so that weights can be exchanged; and variants of them. Called by the registry and
// study/.
#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "stoker/models/registry.h"

namespace stoker::models {

struct ResnetShape {
  std::array<int, 4> blocks{3, 4, 6, 3};  // residual blocks of layer1 ... layer4, at least 1 each: ResNet-34's
  bool bottleneck = false;                // 1x1, 3x3, 1x1 to four times the width, instead of 3x3, 3x3
  std::int64_t width = 64;                // channels of the stem and layer1; each further layer doubles them
  bool small_stem = false;  // 3x3 without stride and pooling, for images up to 64 pixels (the paper's 4.2)
  // false: no norm; convolutions have biases and start as in Fixup (Zhang et al., 2019): biases at zero, the last
  // weights of a block at zero too, so that the block is its shortcut, the others scaled by L^(-1/(2m-2)), L blocks of
  // m convolutions. Not used from Fixup: its scalar multipliers, and its zeros in the last layer.
  bool norm = true;
};

// Segments stem, layer1 ... layer4, head. ConfigError for an invalid shape.
[[nodiscard]] std::unique_ptr<Network> make_resnet(const ModelOptions& options, const ResnetShape& shape = {});

[[nodiscard]] std::unique_ptr<Network> make_resnet18(const ModelOptions& options);
[[nodiscard]] std::unique_ptr<Network> make_resnet34(const ModelOptions& options);
[[nodiscard]] std::unique_ptr<Network> make_resnet50(const ModelOptions& options);

}  // namespace stoker::models
