// SPDX-License-Identifier: Apache-2.0
// The inverse cosine transform of a baseline JPEG: the integer operations of libjpeg-turbo's "islow" in its vector
// version, so that the pixels are equal for any coefficients. Used only by BaselineJpeg. Thread-safe: no state.
#pragma once

#include <cstddef>
#include <cstdint>

#include "stoker/data/decode/jpeg_header.h"

namespace stoker::data {

// Transforms `groups` groups of blocks (CoefficientOrder) and sets their coefficients to 0. Pixels (y, x) of the groups
// go to out + y * stride + x. quantiser: [kBlockSize], row by row, at most 255. False if a coefficient of a first row
// is so large that libjpeg-turbo's shortcut for empty rows gives another result; no encoder writes such a coefficient.
using Transform = bool (*)(std::int16_t* coefficients, int groups, const std::uint16_t* quantiser, std::uint8_t* out,
                           std::ptrdiff_t stride);

struct TransformKernel {
  int blocks = 0;  // of a group
  Transform transform = nullptr;
};

// For this processor; transform is null if it is none of those that BaselineJpeg is made for.
[[nodiscard]] TransformKernel transform_kernel();

}  // namespace stoker::data
