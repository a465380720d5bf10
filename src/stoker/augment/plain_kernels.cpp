// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "stoker/augment/pixel_kernels.h"

namespace stoker::augment {
namespace {

constexpr int kHalf = 1 << (kWeightBits - 1);

std::uint8_t to_byte(int sum) { return static_cast<std::uint8_t>(std::clamp(sum >> kWeightBits, 0, 255)); }

void nothing_across(AxisWeights&, int) {}
void nothing_down(AxisWeights&) {}

void scale_rows(const std::uint8_t* const* in, int count, int channels, const AxisWeights& across, std::uint8_t* out,
                std::ptrdiff_t stride) {
  for (int y = 0; y < count; ++y) {
    std::uint8_t* to = out + y * stride;
    for (int i = 0; i < across.outputs; ++i) {
      const auto at = static_cast<std::size_t>(i);
      const std::uint8_t* from = in[y] + static_cast<std::ptrdiff_t>(across.first[at]) * channels;
      const int* weights = across.weights.data() + at * static_cast<std::size_t>(across.taps);
      for (int c = 0; c < channels; ++c) {
        int sum = kHalf;
        for (int k = 0; k < across.count[at]; ++k) {
          sum += from[k * channels + c] * weights[k];
        }
        *to++ = to_byte(sum);
      }
    }
  }
}

void mix_rows(const std::uint8_t* rows, std::ptrdiff_t stride, std::ptrdiff_t bytes, const AxisWeights& down,
              std::uint8_t* out, std::ptrdiff_t out_stride) {
  for (int y = 0; y < down.outputs; ++y) {
    const auto at = static_cast<std::size_t>(y);
    const std::uint8_t* from = rows + down.first[at] * stride;
    const int* weights = down.weights.data() + at * static_cast<std::size_t>(down.taps);
    for (std::ptrdiff_t x = 0; x < bytes; ++x) {
      int sum = kHalf;
      for (int k = 0; k < down.count[at]; ++k) {
        sum += from[k * stride + x] * weights[k];
      }
      out[y * out_stride + x] = to_byte(sum);
    }
  }
}

void place_rows(ImageView source, bool mirrored, const Placing& out) {
  std::fill_n(out.pixels, out.bytes(), std::uint8_t{0});
  std::uint8_t* row = out.first_row() + out.before;
  for (int y = 0; y < source.height; ++y, row += out.stride) {
    for (int x = 0; x < source.width; ++x) {
      const int from = mirrored ? source.width - 1 - x : x;
      std::copy_n(source.row(y) + from * source.channels, source.channels, row + x * source.channels);
    }
  }
}

}  // namespace

const PixelKernels& plain_kernels() {
  static constexpr PixelKernels kKernels{.name = "plain",
                                         .prepare_across = nothing_across,
                                         .prepare_down = nothing_down,
                                         .scale_rows = scale_rows,
                                         .mix_rows = mix_rows,
                                         .place_rows = place_rows};
  return kKernels;
}

}  // namespace stoker::augment
