// SPDX-License-Identifier: Apache-2.0
// Rotates the hue of a colour image. Used by colour_jitter. Thread-safe: no state.
#pragma once

#include <cstdint>

#include "stoker/augment/pixels.h"

namespace stoker::augment {

// turn: in sixths of a full turn, in units of 2^-16, at most three sixths in each direction. Three channels.
// torchvision's adjust_hue without the conversion to floating-point hue, saturation and value. With the largest channel
// M and the smallest m, the sextant decides which channel is M and which is m; the third is M - (M - m) f or
// m + (M - m) f, where f is the fraction of the hue in the sextant. As in torchvision the result is scaled from 255 to
// 255.999 and truncated.
void turn_hue(Pixels pixels, std::int32_t turn);

}  // namespace stoker::augment
