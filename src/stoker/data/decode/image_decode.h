// SPDX-License-Identifier: Apache-2.0
// Bytes of a JPEG, PNG, WebP or .npy file to pixels. The format is told by the content, never by the file's name. Used
// by data::SampleReader and `stoker predict`. Thread-safe: no state.
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
  // A header is a few bytes and may claim anything: this bounds the memory (3 bytes a pixel) before any is taken.
  std::int64_t max_pixels = 100'000'000;
  // Pixels of either side; JPEG's own bound. Keeps the filter weights of a resize small as well.
  int max_side = 65'500;
  // A scan of a progressive JPEG costs a pass over the whole image and as little as 20 bytes of file; real encoders
  // write about ten. (libjpeg-turbo, "Two Issues with the JPEG Standard", advises a limit.)
  int max_scans = 100;
  // Bytes that a decoder may take for its own purposes: a progressive JPEG keeps two a coefficient.
  std::int64_t max_memory = std::int64_t{1} << 30;
  // A decoder's warning (a JPEG that ends early or has corrupt data, a PNG with a wrong checksum) makes an image bad.
  // Else it is taken as far as it goes, what is missing of a JPEG in grey. Where a decoder gives up it is bad anyway.
  bool strict = true;
};

// What an error says of an image that only strict refuses.
inline constexpr std::string_view kOnlyAWarning = "; a warning: strict=false takes such images as they are";

// What the first bytes of a file say it is: "JPEG", "PNG", "WebP", "GIF", "BMP", "TIFF", "AVIF or HEIC", "JPEG XL",
// "JPEG 2000", "npy", or empty if unknown. 16 bytes are enough.
[[nodiscard]] std::string_view image_format(Bytes head);

// DataError if a header claims more than the limits, or nothing.
void check_image_size(std::int64_t width, std::int64_t height, const DecodeLimits& limits, std::string_view name);

struct ImageInfo {
  std::string_view format;  // "JPEG", "PNG", "WebP", "npy"
  int width = 0;            // pixels, upright (after EXIF orientation where the header tells it)
  int height = 0;
  int channels = 0;     // in the file: 1 grey, 2 grey and alpha, 3, 4 (CMYK, RGBA)
  int orientation = 1;  // EXIF, 1 ... 8, where the header tells it
};

// Reads the header alone. DataError as decode_image.
[[nodiscard]] ImageInfo probe_image(Bytes file, const DecodeLimits& limits, std::string_view name);

// Images one after the other, with the memory of one. The header comes first: what is wanted of an image can be
// chosen by its size, and nothing else of a JPEG is computed. One thread a decoder.
class ImageDecoder {
 public:
  struct Size {
    int width = 0, height = 0;  // pixels, upright
  };

  // channels: 1 (luma) or 3 (RGB). Pixels come upright: EXIF orientations 1-8 are carried out. Grey is repeated; CMYK
  // and YCCK are taken as inverted (Adobe's way) and converted as Pillow does; palettes are looked up; of 16 bits the
  // high 8 are kept; alpha is dropped, not composited (Pillow's convert("RGB")); of an animation the first image is
  // taken. file: its bytes must stay until decode(). name: what to call it in errors. DataError for an unsupported
  // format, a limit exceeded and damage to the header; of a PNG to anything.
  Size open(Bytes file, int channels, const DecodeLimits& limits, std::string_view name);
  // The largest shrink that decode() takes of the image that is open: 1, or up to 8 of a JPEG.
  [[nodiscard]] int most_shrink() const;
  // The whole upright image, of which just region may be read (and 64 bytes beyond its rows); good until the next
  // call of either. Once after each open(). DataError for damage that touches what was decoded: in a JPEG nothing below
  // the region is looked at, in a WebP and a .npy only that it is there.
  // shrink: 1, or 2, 4 or 8 up to most_shrink(): the image comes at 1 / shrink of its size, a side rounded up, and
  // region is of that. Other pixels than those of the whole size, for less work.
  augment::ImageView decode(const augment::Region& region, std::string_view name, int shrink = 1);

 private:
  // The image as stored, of which that region may be read.
  augment::ImageView decode_stored(const augment::Region& region, int shrink, std::string_view name);

  std::string_view format_;
  int channels_ = 3;
  DecodeLimits limits_;
  StoredImage stored_;
  Size size_;
  JpegDecoder jpeg_;
  WebpDecoder webp_;
  NpyImage npy_;
  augment::Image whole_, grey_, turned_;  // a PNG, or a part of a .npy; what had to be made grey; what had to be turned
};

// A whole image. DataError as ImageDecoder; out then holds nothing of use.
void decode_image(Bytes file, int channels, const DecodeLimits& limits, augment::Image& out, std::string_view name);

}  // namespace stoker::data
