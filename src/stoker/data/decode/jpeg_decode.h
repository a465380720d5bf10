// SPDX-License-Identifier: Apache-2.0
// Decodes JPEG: first the header, then only the requested pixels. Baseline images by BaselineJpeg, everything else,
// and every image with any irregularity, by libjpeg-turbo. Used only by image_decode, which documents the behaviour.
// One thread per decoder.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "stoker/augment/image.h"
#include "stoker/base/file.h"
#include "stoker/data/decode/jpeg_rows.h"
#include "stoker/data/decode/stored_image.h"

namespace stoker::data {

class BaselineJpeg;
struct DecodeLimits;

// Which decoder decodes baseline JPEGs. Their pixels are the same; kLibrary is for tests and benches.
enum class JpegPath : std::uint8_t {
  kFastest,  // BaselineJpeg; what it leaves, and everything on a processor without AVX2, by libjpeg-turbo
  kLibrary,  // libjpeg-turbo only
};

class JpegDecoder {
 public:
  struct Reader;  // hides jpeglib.h

  explicit JpegDecoder(JpegPath path = JpegPath::kFastest);
  ~JpegDecoder();

  // Reads the header of a file. The bytes must stay until the last call of decode(). strict: for both functions, as in
  // DecodeLimits. DataError with `name`.
  StoredImage open(Bytes file, bool strict, std::string_view name);
  // Whether the header of the open image is one that BaselineJpeg decodes, on any processor.
  [[nodiscard]] bool is_baseline() const { return is_baseline_; }
  // Decodes a region of the stored image at 1 / shrink of its size (1, 2, 4 or 8; sides are rounded up). Once per
  // open(). 1 channel for grey, else 3 (always 3 for CMYK). Returns the whole image; only the region may be read (and
  // 64 bytes beyond its rows); valid until the next call. The pixels equal a decode of the whole image. rows: as in
  // ImageDecoder::decode().
  augment::ImageView decode(const augment::Region& region, int channels, int shrink, const DecodeLimits& limits,
                            std::string_view name, JpegRows* rows = nullptr);

 private:
  std::unique_ptr<BaselineJpeg> baseline_;  // null: all images by libjpeg-turbo
  bool is_baseline_ = false;                // the open image
  bool takes_baseline_ = false;             // baseline_ does
  std::unique_ptr<Reader> reader_;
  std::vector<std::uint8_t> pixels_;  // only grows
};

}  // namespace stoker::data
