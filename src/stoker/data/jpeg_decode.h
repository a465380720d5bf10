// SPDX-License-Identifier: Apache-2.0
// JPEG by libjpeg-turbo. Used by image_decode alone, which documents the behaviour. Thread-safe: no state.
#pragma once

#include <string_view>

#include "stoker/augment/image.h"
#include "stoker/base/file.h"
#include "stoker/data/image_decode.h"

namespace stoker::data {

// What a header says, before orientation is carried out.
struct StoredPicture {
  int width = 0;
  int height = 0;
  int channels = 0;
  int orientation = 1;  // EXIF, 1 ... 8
};

[[nodiscard]] StoredPicture jpeg_header(Bytes file, std::string_view name);
// As stored; the caller turns it upright.
StoredPicture jpeg_decode(Bytes file, int channels, const DecodeLimits& limits, augment::Image& out,
                          std::string_view name);

}  // namespace stoker::data
