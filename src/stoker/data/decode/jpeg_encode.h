// SPDX-License-Identifier: Apache-2.0
// An image as JPEG bytes, for pages with many small ones. Used by study. Thread-safe: no state.
#pragma once

#include <cstddef>
#include <vector>

#include "stoker/augment/image.h"

namespace stoker::data {

// Grey or RGB, 8 bits, baseline. quality: libjpeg's, 1 ... 100. Error if the encoder refuses, which it does for an
// empty image and one with a side beyond 65,500 pixels.
[[nodiscard]] std::vector<std::byte> encode_jpeg(const augment::ImageView& image, int quality);

}  // namespace stoker::data
