// SPDX-License-Identifier: Apache-2.0
// Decodes JPEG, PNG, WebP and .npy files into pixels. The format is detected from the content, never from the file
// name. Used by data::SampleReader and `stoker predict`. Thread-safe: no state.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "stoker/augment/image.h"
#include "stoker/base/file.h"
#include "stoker/data/decode/jpeg_decode.h"
#include "stoker/data/decode/npy_decode.h"
#include "stoker/data/decode/stored_image.h"
#include "stoker/data/decode/webp_decode.h"

namespace stoker::data {

struct DecodeLimits {
  // A header may claim any size: this limits the memory (3 bytes per pixel) before it is allocated.
  std::int64_t max_pixels = 100'000'000;
  // Pixels per side; the limit of JPEG. Also keeps the filter weights of a resize small.
  int max_side = 65'500;
  // Each scan of a progressive JPEG costs a pass over the whole image but as little as 20 bytes of file. Real encoders
  // write about ten scans. (libjpeg-turbo, "Two Issues with the JPEG Standard", recommends a limit.)
  int max_scans = 100;
  // Working memory of a decoder in bytes: a progressive JPEG needs two bytes per coefficient.
  std::int64_t max_memory = std::int64_t{1} << 30;
  // true: a warning of a decoder (truncated or corrupt JPEG data, a wrong PNG checksum) makes an image bad. false: uses
  // the image as far as it could be decoded; missing parts of a JPEG are grey. A decoder error always makes it bad.
  bool strict = true;
};

// Added to the error of an image that is only bad because of strict.
inline constexpr std::string_view kOnlyAWarning = "; this is only a warning, which strict=off accepts";

// The format according to the first bytes of a file: "JPEG", "PNG", "WebP", "GIF", "BMP", "TIFF", "AVIF or HEIC",
// "JPEG XL", "JPEG 2000", "npy", or empty if unknown. 16 bytes are enough.
[[nodiscard]] std::string_view image_format(Bytes head);

// DataError if the size in a header is above the limits or not positive.
void check_image_size(std::int64_t width, std::int64_t height, const DecodeLimits& limits, std::string_view name);

struct ImageInfo {
  std::string_view format;  // "JPEG", "PNG", "WebP", "npy"
  int width = 0;            // pixels, upright (after EXIF orientation if it is in the header)
  int height = 0;
  int channels = 0;     // in the file: 1 grey, 2 grey and alpha, 3 RGB, 4 CMYK or RGBA
  int orientation = 1;  // EXIF, 1 ... 8, if it is in the header
};

// Reads only the header. DataError as decode_image.
[[nodiscard]] ImageInfo probe_image(Bytes file, const DecodeLimits& limits, std::string_view name);

// Decodes images one after the other and reuses the memory. The header is read first: the caller can choose a region by
// the size of the image, and the rest of a JPEG is not decoded. One thread per decoder.
class ImageDecoder {
 public:
  struct Size {
    int width = 0, height = 0;  // pixels, upright
  };
  explicit ImageDecoder(JpegPath path = JpegPath::kFastest) : jpeg_(path) {}

  // channels: 1 (luma) or 3 (RGB). Pixels are upright: EXIF orientations 1-8 are applied. Grey is repeated; CMYK and
  // YCCK are read as inverted (Adobe) and converted as in Pillow; palettes are resolved; of 16 bits the high 8 are
  // kept; alpha is dropped, not composited (as Pillow's convert("RGB")); of an animation the first image is used. file:
  // the bytes must stay until decode(). name: of the file, for errors. DataError for an unsupported format, an exceeded
  // limit and a damaged header; for a PNG for any damage.
  Size open(Bytes file, int channels, const DecodeLimits& limits, std::string_view name);
  // The largest shrink for decode() of the open image: 1, or up to 8 for a JPEG.
  [[nodiscard]] int most_shrink() const;
  // Whether a shrink above 1 takes less time than the full size: not for JPEGs with a header that our own decoder
  // takes. It decodes them at full size in 0.55 to 0.8 of the time (docs/decisions/codecs.md). The answer is the same
  // on every processor, since pixels depend on it.
  [[nodiscard]] bool shrinking_pays() const;
  // The whole upright image; only region may be read (and 64 bytes beyond its rows). Valid until the next call of
  // open() or decode(). Once per open(). DataError for damage in the decoded part: nothing below the region of a JPEG
  // is checked, and for WebP and .npy only that it is present.
  // shrink: 1, or 2, 4 or 8 up to most_shrink(): decodes the image at 1 / shrink of its size, sides rounded up; region
  // refers to that size. Less work, but other pixels than at full size.
  // rows: null, or the rows of this file that are known. A baseline JPEG at full size is decoded from the first needed
  // row on if it is known, and the rows that were passed are added; if they lead to no image, they are emptied. Other
  // images leave rows as they are.
  augment::ImageView decode(const augment::Region& region, std::string_view name, int shrink = 1,
                            JpegRows* rows = nullptr);

 private:
  // The stored image; only the region may be read.
  augment::ImageView decode_stored(const augment::Region& region, int shrink, std::string_view name, JpegRows* rows);

  std::string_view format_;
  int channels_ = 3;
  DecodeLimits limits_;
  StoredImage stored_;
  Size size_;
  JpegDecoder jpeg_;
  WebpDecoder webp_;
  NpyImage npy_;
  augment::Image whole_, grey_, turned_;  // a PNG or a part of a .npy; converted to grey; rotated
};

// Decodes a whole image. DataError as ImageDecoder; the content of out is then undefined.
void decode_image(Bytes file, int channels, const DecodeLimits& limits, augment::Image& out, std::string_view name);

}  // namespace stoker::data
