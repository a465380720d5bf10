// SPDX-License-Identifier: Apache-2.0
// The hue of a colour image, turned. Used by colour_jitter. Thread-safe: no state.
#pragma once

#include <cstdint>

#include "stoker/augment/pixels.h"

namespace stoker::augment {

// turn: in sixths of a full one, 2^-16 each, at most three to either side. Three channels.
// torchvision's adjust_hue without its detour over floating hue, saturation and value: with the largest channel M and
// the smallest m, the sextant says which channel is M, which is m, and the third is M - (M - m) f or m + (M - m) f,
// f being the hue's fraction in it. As there, the result is scaled from 255 to 255.999 and its fraction cut off.
void turn_hue(Pixels pixels, std::int32_t turn);

}  // namespace stoker::augment
