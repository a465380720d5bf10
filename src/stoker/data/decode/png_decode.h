// SPDX-License-Identifier: Apache-2.0
// PNG by libspng. Used by image_decode alone, which documents the behaviour. Thread-safe: no state.
#pragma once

#include <string_view>

#include "stoker/augment/image.h"
#include "stoker/base/file.h"
#include "stoker/data/decode/image_decode.h"
#include "stoker/data/decode/stored_image.h"

namespace stoker::data {

[[nodiscard]] StoredImage png_header(Bytes file, const DecodeLimits& limits, std::string_view name);
// As stored, in 1 or 3 channels (a colour image comes in 3 even if 1 was asked for); the caller does the rest.
StoredImage png_decode(Bytes file, int channels, const DecodeLimits& limits, augment::Image& out,
                       std::string_view name);

}  // namespace stoker::data
