// SPDX-License-Identifier: Apache-2.0
// The same picture in a file that no JPEG decoder reads, for tests that load a set of JPEGs and compare it with what
// libjpeg-turbo makes of them. Thread-safe: no state.
#pragma once

#include <string>

#include "stoker/base/error.h"
#include "stoker/data/decode/image_decode.h"
#include "stoker/data/decode/png_encode.h"

namespace stoker::testing {

// A PNG of the pixels that libjpeg-turbo decodes from a JPEG, upright; other and unreadable files stay as they are.
inline std::string with_library_pixels(const std::string& file) {
  if (data::image_format(as_bytes(file)) != "JPEG") {
    return file;
  }
  try {
    data::ImageDecoder library(data::JpegPath::kLibrary);
    const data::ImageDecoder::Size size = library.open(as_bytes(file), 3, {}, "x.jpg");
    return std::string(as_text(data::encode_png(library.decode({0, 0, size.width, size.height}, "x.jpg"))));
  } catch (const DataError&) {
    return file;
  }
}

}  // namespace stoker::testing
