// SPDX-License-Identifier: Apache-2.0
// The facts of one image: size, hashes, sums of pixels, and a perceptual hash. Called by the threads of
// inspect_images(), each with its own ImageLooker.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <memory>
#include <string_view>

#include "stoker/augment/image.h"
#include "stoker/base/file.h"

namespace stoker::data {
class RowIndex;
}  // namespace stoker::data

namespace stoker::study {

struct Hash128 {
  std::uint64_t high = 0, low = 0;
  auto operator<=>(const Hash128&) const = default;
};

// Exact sums over all pixels of all images; the squares of 2.8e14 pixels fit.
struct PixelSums {
  std::int64_t pixels = 0;
  std::array<std::uint64_t, 3> sum{}, squares{};  // per channel: red, green, blue

  void add(const PixelSums& other);
  // For values 0 to 1, over the whole population; NaN without a pixel.
  [[nodiscard]] double mean(std::size_t channel) const;
  [[nodiscard]] double deviation(std::size_t channel) const;
};

struct ImageLook {
  std::string_view format;              // "JPEG"
  int width = 0, height = 0;            // pixels, upright
  int channels = 0;                     // in the file: 1 grey, 2 grey and alpha, 3 colour, 4 CMYK or colour and alpha
  int orientation = 1;                  // EXIF
  bool grey = false;                    // all channels of each pixel are equal, whatever the number of channels
  bool plain = false;                   // one colour: every channel deviates by less than kPlain from its mean
  Hash128 content, pixels;              // of the file's bytes; of size and RGB pixels
  std::uint64_t look = 0;               // difference hash: bit i is set if cell i is darker than its right neighbour
  int firm = 0;                         // how many of these 64 bits compare cells that clearly differ
  std::array<std::uint8_t, 12> tint{};  // mean red, green and blue of each quarter
};
inline constexpr double kPlain = 2.0 / 255;

class ImageLooker {
 public:
  ImageLooker();
  ~ImageLooker();
  // DataError with name, as data::ImageDecoder; the sums are then unchanged. rows: null, or learns the rows of a JPEG.
  [[nodiscard]] ImageLook look(Bytes file, std::string_view name, PixelSums& sums, data::RowIndex* rows = nullptr);
  // The upright image, at most `side` pixels wide and high; valid until the next call.
  [[nodiscard]] augment::ImageView thumbnail(Bytes file, std::string_view name, int side);

 private:
  struct Memory;
  std::unique_ptr<Memory> memory_;
};

[[nodiscard]] Hash128 hash_of(Bytes bytes);

}  // namespace stoker::study
