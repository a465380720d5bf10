// SPDX-License-Identifier: Apache-2.0
// Encodes an image as JPEG, for pages with many small images. Used by study. Thread-safe: no state.
#pragma once

#include <cstddef>
#include <vector>

#include "stoker/augment/image.h"

namespace stoker::data {

// Grey or RGB, 8 bits, baseline. quality: 1 ... 100, as in libjpeg. Error if the encoder fails, for example for an
// empty image or a side of more than 65,500 pixels.
[[nodiscard]] std::vector<std::byte> encode_jpeg(const augment::ImageView& image, int quality);

}  // namespace stoker::data
