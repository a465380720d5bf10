// SPDX-License-Identifier: Apache-2.0
// Decodes WebP with libwebp: first the header, then only the requested pixels. Used only by image_decode, which
// documents the behaviour. One thread per decoder.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "stoker/augment/image.h"
#include "stoker/base/file.h"
#include "stoker/data/decode/stored_image.h"

namespace stoker::data {

struct DecodeLimits;

class WebpDecoder {
 public:
  // Reads the header of a file. The bytes must stay until decode(). For an animation the image is the first frame at
  // its place on a black canvas, as in Pillow. DataError with `name`, also for a truncated file.
  StoredImage open(Bytes file, std::string_view name);
  // Decodes a region of the stored image with 3 channels; transparent pixels keep their colours. Once per open().
  // Returns the whole image; only the region may be read; valid until the next call. The pixels equal a decode of the
  // whole image.
  augment::ImageView decode(const augment::Region& region, const DecodeLimits& limits, std::string_view name);

 private:
  void check_memory(const DecodeLimits& limits, std::string_view name) const;

  Bytes frame_;                       // the part of the file with the pixels
  int width_ = 0, height_ = 0;        // of the image
  augment::Region place_;             // of the frame in the image
  std::int64_t memory_ = 0;           // bytes that libwebp needs to decode it
  std::vector<std::uint8_t> pixels_;  // only grows
};

}  // namespace stoker::data
