// SPDX-License-Identifier: Apache-2.0
// Encodes an image as PNG, for reports. Used by tasks. Thread-safe: no state.
#pragma once

#include <cstddef>
#include <vector>

#include "stoker/augment/image.h"

namespace stoker::data {

// Grey or RGB, 8 bits. Error if the encoder fails, for example for an empty image.
[[nodiscard]] std::vector<std::byte> encode_png(const augment::ImageView& image);

}  // namespace stoker::data
