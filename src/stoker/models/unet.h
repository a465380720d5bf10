// SPDX-License-Identifier: Apache-2.0
// A network that classifies every pixel of an image, after U-Net (Ronneberger et al., 2015). Made by study/ and by
// programs.
#pragma once

#include <cstdint>
#include <memory>

#include "stoker/models/network.h"

namespace stoker::models {

struct UnetOptions {
  std::int64_t channels = 3;  // of the input
  std::int64_t classes = 2;
  std::int64_t width = 32;  // channels at full resolution, the paper's 64; each level below doubles them
  int depth = 4;            // number of times the resolution is halved
  bool conv_bias = false;   // as ModelOptions::conv_bias
  std::uint64_t seed = 0;
};

// Input [N, channels, H, W], output logits [N, classes, H, W]; H and W are multiples of 2^depth, else DataError. Each
// level is two 3x3 convolutions with batch norm and ReLU. Unlike the paper's they are padded, so that sizes stay and
// skips fit uncropped. The way up is a 1x1 convolution at the low resolution, then bilinear upsampling by 2. The two
// commute, so this equals the paper's order at a quarter of its work; a transposed convolution took 1.5 to 2 times as
// long on a CPU, and can leave a checkerboard pattern (Odena et al., 2016). Segments down0 ... down<depth>, up<depth-1>
// ... up0, head. Between them passes a stack: the outputs of the levels that are joined later, and last the current
// tensor. ConfigError for invalid options.
[[nodiscard]] std::unique_ptr<Network> make_unet(const UnetOptions& options);

}  // namespace stoker::models
