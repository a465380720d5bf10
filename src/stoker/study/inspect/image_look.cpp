// SPDX-License-Identifier: Apache-2.0
#include "stoker/study/inspect/image_look.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "stoker/augment/resize.h"
#include "stoker/data/decode/image_decode.h"
#include "stoker/data/load/row_index.h"

namespace stoker::study {
namespace {

constexpr int kCells = 8;    // cells per side of the difference hash
constexpr int kClearly = 3;  // grey levels; another encoder may turn a smaller difference around

Hash128 from(XXH128_hash_t hash) { return {hash.high64, hash.low64}; }

// The sums of a row fit into 32 bits: a side has at most 65,500 pixels.
void add_row(const std::uint8_t* in, int width, PixelSums& sums) {
  std::array<std::uint32_t, 3> sum{}, squares{};
  for (int x = 0; x < width; ++x, in += 3) {
    for (std::size_t c = 0; c < 3; ++c) {
      const std::uint32_t value = in[c];
      sum[c] += value;
      squares[c] += value * value;
    }
  }
  for (std::size_t c = 0; c < 3; ++c) {
    sums.sum[c] += sum[c];
    sums.squares[c] += squares[c];
  }
}

bool is_grey(const augment::ImageView& view) {
  for (int y = 0; y < view.height; ++y) {
    const std::uint8_t* in = view.row(y);
    for (int x = 0; x < view.width; ++x, in += 3) {
      if (in[0] != in[1] || in[1] != in[2]) {
        return false;
      }
    }
  }
  return true;
}

Hash128 hash_of_pixels(const augment::ImageView& view) {
  XXH3_state_t state;
  XXH3_128bits_reset_withSeed(&state,
                              static_cast<std::uint64_t>(view.width) << 32 | static_cast<unsigned>(view.height));
  for (int y = 0; y < view.height; ++y) {
    XXH3_128bits_update(&state, view.row(y), static_cast<std::size_t>(view.width) * 3);
  }
  return from(XXH3_128bits_digest(&state));
}

// Means of the four quarters; an odd middle column is left out.
void set_tint(const std::uint8_t* cells, int stride, ImageLook& facts) {
  constexpr int kHalf = kCells / 2;
  for (int quarter = 0; quarter < 4; ++quarter) {
    for (int c = 0; c < 3; ++c) {
      int sum = 0;
      for (int y = 0; y < kHalf; ++y) {
        for (int x = 0; x < kHalf; ++x) {
          sum += cells[(y + quarter / 2 * kHalf) * stride + (x + quarter % 2 * (kHalf + 1)) * 3 + c];
        }
      }
      facts.tint[static_cast<std::size_t>(3 * quarter + c)] = static_cast<std::uint8_t>(sum / (kHalf * kHalf));
    }
  }
}

// Green has twice the weight: close enough to luma here.
int brightness(const std::uint8_t* pixel) { return pixel[0] + 2 * pixel[1] + pixel[2]; }

void set_look(const augment::ImageView& view, augment::ResizeScratch& scratch, ImageLook& facts) {
  std::array<std::uint8_t, static_cast<std::size_t>(kCells * (kCells + 1) * 3)> cells{};
  constexpr int kStride = (kCells + 1) * 3;
  augment::resize(view, {0, 0, static_cast<double>(view.width), static_cast<double>(view.height)}, kCells + 1, kCells,
                  {0, 0, kCells + 1, kCells}, false, cells.data(), kStride, scratch);
  set_tint(cells.data(), kStride, facts);
  for (int y = 0; y < kCells; ++y) {
    for (int x = 0; x < kCells; ++x) {
      const std::uint8_t* left = cells.data() + y * kStride + x * 3;
      const int step = brightness(left + 3) - brightness(left);
      facts.look = facts.look << 1 | (step > 0 ? 1 : 0);
      facts.firm += std::abs(step) >= 4 * kClearly ? 1 : 0;
    }
  }
}

}  // namespace

void PixelSums::add(const PixelSums& other) {
  pixels += other.pixels;
  for (std::size_t c = 0; c < 3; ++c) {
    sum[c] += other.sum[c];
    squares[c] += other.squares[c];
  }
}

double PixelSums::mean(std::size_t channel) const {
  return pixels == 0 ? std::numeric_limits<double>::quiet_NaN()
                     : static_cast<double>(sum[channel]) / static_cast<double>(pixels) / 255;
}

double PixelSums::deviation(std::size_t channel) const {
  if (pixels == 0) {
    return std::numeric_limits<double>::quiet_NaN();
  }
  const auto count = static_cast<long double>(pixels), total = static_cast<long double>(sum[channel]);
  const long double variance = (static_cast<long double>(squares[channel]) - total * total / count) / count;
  return static_cast<double>(std::sqrt(std::max(variance, 0.0L)) / 255);
}

Hash128 hash_of(Bytes bytes) { return from(XXH3_128bits(bytes.data(), bytes.size())); }

struct ImageLooker::Memory {
  data::ImageDecoder decoder;
  augment::ResizeScratch scratch;
  augment::Image small;
  data::JpegRows row_memory;

  augment::ImageView decode(Bytes file, std::string_view name, data::RowIndex* rows = nullptr) {
    const data::ImageDecoder::Size size = decoder.open(file, 3, {}, name);
    const augment::Region all{0, 0, size.width, size.height};
    return rows == nullptr ? decoder.decode(all, name)
                           : data::decode_with_rows(*rows, decoder, file, all, name, row_memory);
  }
};

ImageLooker::ImageLooker() : memory_(std::make_unique<Memory>()) {}
ImageLooker::~ImageLooker() = default;

ImageLook ImageLooker::look(Bytes file, std::string_view name, PixelSums& sums, data::RowIndex* rows) {
  const data::ImageInfo info = data::probe_image(file, {}, name);
  const augment::ImageView view = memory_->decode(file, name, rows);
  ImageLook facts;
  facts.format = info.format;
  facts.width = view.width, facts.height = view.height;
  facts.channels = info.channels;
  facts.orientation = info.orientation;
  PixelSums own;
  own.pixels = std::int64_t{view.width} * view.height;
  for (int y = 0; y < view.height; ++y) {
    add_row(view.row(y), view.width, own);
  }
  sums.add(own);
  facts.plain = std::ranges::all_of(std::array<std::size_t, 3>{0, 1, 2},
                                    [&](std::size_t channel) { return own.deviation(channel) < kPlain; });
  facts.grey = is_grey(view);
  facts.content = hash_of(file);
  facts.pixels = hash_of_pixels(view);
  set_look(view, memory_->scratch, facts);
  return facts;
}

augment::ImageView ImageLooker::thumbnail(Bytes file, std::string_view name, int side) {
  const augment::ImageView view = memory_->decode(file, name);
  if (view.width <= side && view.height <= side) {
    return view;
  }
  const double scale = static_cast<double>(side) / std::max(view.width, view.height);
  const auto scaled = [&](int length) { return std::clamp(static_cast<int>(std::lround(length * scale)), 1, side); };
  augment::Image& small = memory_->small;
  small.reshape(scaled(view.width), scaled(view.height), 3);
  augment::resize(view, {0, 0, static_cast<double>(view.width), static_cast<double>(view.height)}, small.width,
                  small.height, {0, 0, small.width, small.height}, false, small.pixels.data(),
                  static_cast<std::ptrdiff_t>(small.width) * 3, memory_->scratch);
  return small.view();
}

}  // namespace stoker::study
