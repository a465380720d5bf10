// SPDX-License-Identifier: Apache-2.0
#include "stoker/augment/resize.h"

#include <algorithm>
#include <cmath>

#include "stoker/base/error.h"

namespace stoker::augment {
namespace {

constexpr int kWeightBits = 32 - 8 - 2;  // 8 bits of pixel, 2 of headroom: Pillow's PRECISION_BITS
constexpr int kHalf = 1 << (kWeightBits - 1);

std::uint8_t to_byte(int sum) { return static_cast<std::uint8_t>(std::clamp(sum >> kWeightBits, 0, 255)); }

// Pillow's precompute_coeffs and normalize_coeffs_8bpc for the triangle filter, outputs first ... first + outputs - 1
// of `scaled`. in0 and in1 are float there too: that is part of the result.
void weigh(int source_size, float in0, float in1, int scaled, int first, int outputs, AxisWeights& axis,
           std::vector<double>& exact) {
  const double scale = static_cast<double>(in1 - in0) / scaled;
  const double filter_scale = std::max(scale, 1.0);
  const double support = filter_scale;
  axis.taps = static_cast<int>(std::ceil(support)) * 2 + 1;
  axis.first.resize(static_cast<std::size_t>(outputs));
  axis.count.resize(static_cast<std::size_t>(outputs));
  axis.weights.assign(static_cast<std::size_t>(outputs) * static_cast<std::size_t>(axis.taps), 0);
  exact.resize(static_cast<std::size_t>(axis.taps));
  const double inverse = 1.0 / filter_scale;
  for (int i = 0; i < outputs; ++i) {
    const double centre = in0 + (first + i + 0.5) * scale;
    const int low = std::max(static_cast<int>(centre - support + 0.5), 0);
    const int count = std::min(static_cast<int>(centre + support + 0.5), source_size) - low;
    double total = 0;
    for (int k = 0; k < count; ++k) {
      const double distance = std::abs((k + low - centre + 0.5) * inverse);
      exact[static_cast<std::size_t>(k)] = distance < 1.0 ? 1.0 - distance : 0.0;
      total += exact[static_cast<std::size_t>(k)];
    }
    int* weights = axis.weights.data() + static_cast<std::ptrdiff_t>(i) * axis.taps;
    for (int k = 0; k < count; ++k) {
      const double share = total != 0.0 ? exact[static_cast<std::size_t>(k)] / total : 0.0;
      weights[k] = static_cast<int>(0.5 + share * (1 << kWeightBits));
    }
    axis.first[static_cast<std::size_t>(i)] = low;
    axis.count[static_cast<std::size_t>(i)] = count;
  }
}

template <int kChannels>
void scale_row(const std::uint8_t* source, const AxisWeights& axis, std::uint8_t* out) {
  const std::size_t outputs = axis.first.size();
  for (std::size_t i = 0; i < outputs; ++i) {
    const std::uint8_t* from = source + static_cast<std::ptrdiff_t>(axis.first[i]) * kChannels;
    const int* weights = axis.weights.data() + i * static_cast<std::size_t>(axis.taps);
    int sums[kChannels];
    std::fill_n(sums, kChannels, kHalf);
    for (int k = 0; k < axis.count[i]; ++k) {
      for (int c = 0; c < kChannels; ++c) {
        sums[c] += from[k * kChannels + c] * weights[k];
      }
    }
    for (int c = 0; c < kChannels; ++c) {
      *out++ = to_byte(sums[c]);
    }
  }
}

void scale_row(const std::uint8_t* source, int channels, const AxisWeights& axis, std::uint8_t* out) {
  switch (channels) {
    case 1: return scale_row<1>(source, axis, out);
    case 2: return scale_row<2>(source, axis, out);
    case 3: return scale_row<3>(source, axis, out);
    default: return scale_row<4>(source, axis, out);
  }
}

// One output row as the weighted sum of count rows of `bytes` bytes each.
void mix_rows(const std::uint8_t* rows, std::ptrdiff_t bytes, const int* weights, int count, int* sums,
              std::uint8_t* out) {
  std::fill_n(sums, bytes, kHalf);
  for (int k = 0; k < count; ++k, rows += bytes) {
    const int weight = weights[k];
    for (std::ptrdiff_t i = 0; i < bytes; ++i) {
      sums[i] += rows[i] * weight;
    }
  }
  for (std::ptrdiff_t i = 0; i < bytes; ++i) {
    out[i] = to_byte(sums[i]);
  }
}

void check(ImageView source, const Box& box, int width, int height, const Window& window) {
  if (source.width < 1 || source.height < 1 || source.channels < 1 || source.channels > 4 || width < 1 || height < 1) {
    fail<ConfigError>("augment.resize",
                      "cannot scale {}x{}x{} pixels to {}x{}; sizes must be at least 1, channels 1 to 4", source.width,
                      source.height, source.channels, width, height);
  }
  if (!(box.left >= 0 && box.top >= 0 && box.left < box.right && box.top < box.bottom && box.right <= source.width &&
        box.bottom <= source.height)) {
    fail<ConfigError>("augment.resize", "box [{}, {}) x [{}, {}) is not within a picture of {}x{}", box.left, box.right,
                      box.top, box.bottom, source.width, source.height);
  }
  if (window.left < 0 || window.top < 0 || window.width < 1 || window.height < 1 ||
      window.width > width - window.left || window.height > height - window.top) {
    fail<ConfigError>("augment.resize", "window {}x{} at ({}, {}) is not within a picture of {}x{}", window.width,
                      window.height, window.left, window.top, width, height);
  }
}

}  // namespace

void resize(ImageView source, const Box& box, int scaled_width, int scaled_height, const Window& window,
            std::uint8_t* out, std::ptrdiff_t out_stride, ResizeScratch& scratch) {
  check(source, box, scaled_width, scaled_height, window);
  AxisWeights& across = scratch.horizontal;
  AxisWeights& down = scratch.vertical;
  weigh(source.width, static_cast<float>(box.left), static_cast<float>(box.right), scaled_width, window.left,
        window.width, across, scratch.exact);
  weigh(source.height, static_cast<float>(box.top), static_cast<float>(box.bottom), scaled_height, window.top,
        window.height, down, scratch.exact);

  // Both axes' first and last taps grow with the output, so these are the source rows that anything needs.
  const int first_row = down.first.front();
  const int last_row = down.first.back() + down.count.back();
  const std::ptrdiff_t bytes = static_cast<std::ptrdiff_t>(window.width) * source.channels;
  scratch.rows.resize(static_cast<std::size_t>(bytes) * static_cast<std::size_t>(last_row - first_row));
  scratch.sums.resize(static_cast<std::size_t>(bytes));
  for (int y = first_row; y < last_row; ++y) {
    scale_row(source.row(y), source.channels, across, scratch.rows.data() + (y - first_row) * bytes);
  }
  for (int y = 0; y < window.height; ++y) {
    const auto i = static_cast<std::size_t>(y);
    mix_rows(scratch.rows.data() + (down.first[i] - first_row) * bytes, bytes,
             down.weights.data() + static_cast<std::ptrdiff_t>(y) * down.taps, down.count[i], scratch.sums.data(),
             out + y * out_stride);
  }
}

}  // namespace stoker::augment
