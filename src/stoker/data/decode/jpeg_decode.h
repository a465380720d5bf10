// SPDX-License-Identifier: Apache-2.0
// JPEG by libjpeg-turbo: the header first, then no more pixels than are wanted. Used by image_decode alone, which
// documents the behaviour. One thread a decoder.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "stoker/augment/image.h"
#include "stoker/base/file.h"
#include "stoker/data/decode/stored_image.h"

namespace stoker::data {

struct DecodeLimits;

class JpegDecoder {
 public:
  struct Reader;  // libjpeg's

  JpegDecoder();
  ~JpegDecoder();

  // Reads the header of a file, whose bytes must stay until the last call of decode(). strict: of both, as
  // DecodeLimits has it. DataError with `name`.
  StoredImage open(Bytes file, bool strict, std::string_view name);
  // Decodes region of the image as stored, at 1 / shrink of its size (1, 2, 4 or 8; a side is rounded up), once after
  // each open(): 1 channel of grey, else 3 (of CMYK always 3). The answer is the whole image, of which just that
  // region may be read (and 64 bytes beyond its rows); it is good until the next call. The pixels are those that
  // decoding the whole image gives.
  augment::ImageView decode(const augment::Region& region, int channels, int shrink, const DecodeLimits& limits,
                            std::string_view name);

 private:
  std::unique_ptr<Reader> reader_;
  std::vector<std::uint8_t> pixels_;  // only ever grows
};

}  // namespace stoker::data
