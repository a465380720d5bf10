// SPDX-License-Identifier: Apache-2.0
// WebP by libwebp: the header first, then no more pixels than are wanted. Used by image_decode alone, which documents
// the behaviour. One thread a decoder.
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
  // Reads the header of a file, whose bytes must stay until decode(). Of an animation the first frame is the image,
  // where it lies on its canvas, the rest of which is black: what Pillow shows. DataError with `name`, also for a file
  // that ends early.
  StoredImage open(Bytes file, std::string_view name);
  // Decodes region of the image as stored, once after each open(), in 3 channels: what is transparent keeps its
  // colours. The answer is the whole image, of which just that region may be read; it is good until the next call.
  // The pixels are those that decoding the whole image gives.
  augment::ImageView decode(const augment::Region& region, const DecodeLimits& limits, std::string_view name);

 private:
  void check_memory(const DecodeLimits& limits, std::string_view name) const;

  Bytes frame_;                       // of the file, what holds the pixels
  int width_ = 0, height_ = 0;        // of the image
  augment::Region place_;             // of the frame in it
  std::int64_t memory_ = 0;           // bytes that libwebp takes to decode it
  std::vector<std::uint8_t> pixels_;  // only ever grows
};

}  // namespace stoker::data
