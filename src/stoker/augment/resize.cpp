// SPDX-License-Identifier: Apache-2.0
#include "stoker/augment/resize.h"

#include <algorithm>
#include <cmath>

#include "stoker/augment/pixel_kernels.h"
#include "stoker/base/error.h"

namespace stoker::augment {
namespace {

struct Bilinear {
  static constexpr double kReach = 1;
  double operator()(double distance) const { return distance < 1.0 ? 1.0 - distance : 0.0; }
};

struct Bicubic {
  static constexpr double kReach = 2;
  double operator()(double x) const {
    constexpr double a = -0.5;
    if (x < 1.0) {
      return ((a + 2.0) * x - (a + 3.0)) * x * x + 1;
    }
    return x < 2.0 ? (((x - 5) * x + 8) * x - 4) * a : 0.0;
  }
};

// Pillow's precompute_coeffs and normalize_coeffs_8bpc for outputs first ... first + outputs - 1 of `scaled`, or in
// reverse order. in0 and in1 are float as in Pillow, which affects the result.
template <typename Filter>
void weigh(int source_size, float in0, float in1, int scaled, int first, int outputs, bool reversed, AxisWeights& axis,
           std::vector<double>& exact) {
  const double scale = static_cast<double>(in1 - in0) / scaled;
  const double filter_scale = std::max(scale, 1.0);
  const double support = Filter::kReach * filter_scale;
  const auto rounded_up = [](int value) { return (value + kTapGroup - 1) / kTapGroup * kTapGroup; };
  axis.outputs = outputs;
  axis.taps = rounded_up(static_cast<int>(std::ceil(support)) * 2 + 1);
  const auto entries = static_cast<std::size_t>(rounded_up(outputs));
  axis.first.resize(entries);
  axis.count.resize(entries);
  axis.weights.assign(entries * static_cast<std::size_t>(axis.taps), 0);
  exact.resize(static_cast<std::size_t>(axis.taps));
  const double inverse = 1.0 / filter_scale;
  for (int i = 0; i < outputs; ++i) {
    const double centre = in0 + (first + i + 0.5) * scale;
    const int low = std::max(static_cast<int>(centre - support + 0.5), 0);
    const int count = std::min(static_cast<int>(centre + support + 0.5), source_size) - low;
    double total = 0;
    for (int k = 0; k < count; ++k) {
      const double distance = std::abs((k + low - centre + 0.5) * inverse);
      exact[static_cast<std::size_t>(k)] = Filter()(distance);
      total += exact[static_cast<std::size_t>(k)];
    }
    const int at = reversed ? outputs - 1 - i : i;
    int* weights = axis.weights.data() + static_cast<std::ptrdiff_t>(at) * axis.taps;
    for (int k = 0; k < count; ++k) {
      const double share = total != 0.0 ? exact[static_cast<std::size_t>(k)] / total : 0.0;
      weights[k] = static_cast<int>((share < 0 ? -0.5 : 0.5) + share * (1 << kWeightBits));
    }
    axis.first[static_cast<std::size_t>(at)] = low;
    axis.count[static_cast<std::size_t>(at)] = count;
    axis.begin = i == 0 ? low : axis.begin;
    axis.end = low + count;  // both ends increase with the output
  }
  for (auto i = static_cast<std::size_t>(outputs); i < entries; ++i) {
    axis.first[i] = axis.first[i - 1];
    axis.count[i] = 0;
  }
}

// Pointers to source rows first ... first + count - 1, for a reader of columns left ... right - 1 that reads kSlack
// bytes beyond. Rows at the end of the image are copied.
void point_to_rows(ImageView source, int first, int count, int left, int right, ResizeScratch& scratch) {
  const std::ptrdiff_t bytes = static_cast<std::ptrdiff_t>(source.width) * source.channels;
  const std::uint8_t* end = source.row(source.height - 1) + bytes;
  scratch.inputs.resize(static_cast<std::size_t>(count));
  int whole = count;
  while (whole > 0 && end - source.row(first + whole - 1) < bytes + kSlack) {
    --whole;
  }
  for (int y = 0; y < whole; ++y) {
    scratch.inputs[static_cast<std::size_t>(y)] = source.row(first + y);
  }
  scratch.last_rows.resize(static_cast<std::size_t>((count - whole) * (bytes + kSlack)));
  for (int y = whole; y < count; ++y) {
    std::uint8_t* copy = scratch.last_rows.data() + (y - whole) * (bytes + kSlack);
    const std::ptrdiff_t from = static_cast<std::ptrdiff_t>(left) * source.channels;
    std::copy_n(source.row(first + y) + from, (right - left) * source.channels, copy + from);
    scratch.inputs[static_cast<std::size_t>(y)] = copy;
  }
}

void check(ImageView source, const Box& box, int width, int height, const Region& window) {
  if (source.width < 1 || source.height < 1 || source.channels < 1 || source.channels > 4 || width < 1 || height < 1) {
    fail<ConfigError>("augment.resize",
                      "cannot scale {}x{}x{} pixels to {}x{}; sizes must be at least 1, channels 1 to 4", source.width,
                      source.height, source.channels, width, height);
  }
  if (!(box.left >= 0 && box.top >= 0 && box.left < box.right && box.top < box.bottom && box.right <= source.width &&
        box.bottom <= source.height)) {
    fail<ConfigError>("augment.resize", "box [{}, {}) x [{}, {}) is not inside the image of {}x{}", box.left, box.right,
                      box.top, box.bottom, source.width, source.height);
  }
  if (window.left < 0 || window.top < 0 || window.width < 1 || window.height < 1 ||
      window.width > width - window.left || window.height > height - window.top) {
    fail<ConfigError>("augment.resize", "window {}x{} at ({}, {}) is not inside the image of {}x{}", window.width,
                      window.height, window.left, window.top, width, height);
  }
}

}  // namespace

double reach_of(Interpolation interpolation) {
  return interpolation == Interpolation::kBicubic ? Bicubic::kReach : Bilinear::kReach;
}

void resize(ImageView source, const Box& box, int scaled_width, int scaled_height, const Region& window, bool mirrored,
            std::uint8_t* out, std::ptrdiff_t out_stride, ResizeScratch& scratch, Interpolation interpolation) {
  check(source, box, scaled_width, scaled_height, window);
  AxisWeights& across = scratch.horizontal;
  AxisWeights& down = scratch.vertical;
  const auto weigh_axis = interpolation == Interpolation::kBicubic ? weigh<Bicubic> : weigh<Bilinear>;
  weigh_axis(source.width, static_cast<float>(box.left), static_cast<float>(box.right), scaled_width, window.left,
             window.width, mirrored, across, scratch.exact);
  weigh_axis(source.height, static_cast<float>(box.top), static_cast<float>(box.bottom), scaled_height, window.top,
             window.height, false, down, scratch.exact);
  for (int& first : down.first) {
    first -= down.begin;
  }
  const int count = down.end - down.begin;
  const std::ptrdiff_t bytes = static_cast<std::ptrdiff_t>(window.width) * source.channels;
  const std::ptrdiff_t stride = bytes + kSlack;
  scratch.rows.resize(std::max(scratch.rows.size(), static_cast<std::size_t>(stride * (count + kTapGroup - 1))));
  point_to_rows(source, down.begin, count, across.begin, across.end, scratch);
  const PixelKernels& kernels = scratch.kernels != nullptr ? *scratch.kernels : fastest_kernels();
  kernels.prepare_across(across, source.channels);
  kernels.prepare_down(down);
  kernels.scale_rows(scratch.inputs.data(), count, source.channels, across, scratch.rows.data(), stride);
  kernels.mix_rows(scratch.rows.data(), stride, bytes, down, out, out_stride);
}

}  // namespace stoker::augment
