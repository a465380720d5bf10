// SPDX-License-Identifier: Apache-2.0
// Decodes PNG with libspng. Used only by image_decode, which documents the behaviour. Thread-safe: no state.
#pragma once

#include <string_view>

#include "stoker/augment/image.h"
#include "stoker/base/file.h"
#include "stoker/data/decode/image_decode.h"
#include "stoker/data/decode/stored_image.h"

namespace stoker::data {

[[nodiscard]] StoredImage png_header(Bytes file, const DecodeLimits& limits, std::string_view name);
// The stored image with 1 or 3 channels (3 for a colour image even if 1 is requested); the caller converts it.
StoredImage png_decode(Bytes file, int channels, const DecodeLimits& limits, augment::Image& out,
                       std::string_view name);

}  // namespace stoker::data
