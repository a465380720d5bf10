// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <utility>
#include <vector>

#include "measure_cases.h"
#include "stoker/augment/resize.h"
#include "stoker/base/error.h"
#include "stoker/study/paired.h"

namespace stoker::bench {
namespace {

constexpr int kSide = 224, kChannels = 3;

// The twin: the same filter (a triangle as wide as the scale, at least one pixel to either side; weights add up to 1)
// in plain float loops, along x and then along y, compiled like the kernels for any x86-64.
class FloatTwin {
 public:
  explicit FloatTwin(const augment::Image& source) : source_(source) {}

  void run(std::vector<std::uint8_t>& out) {
    weigh(source_.width);
    rows_.resize(static_cast<std::size_t>(source_.height) * kSide * kChannels);
    for (int y = 0; y < source_.height; ++y) {
      across(source_.view().row(y), rows_.data() + static_cast<std::ptrdiff_t>(y) * kSide * kChannels);
    }
    weigh(source_.height);
    for (int y = 0; y < kSide; ++y) {
      down(y, out.data() + static_cast<std::ptrdiff_t>(y) * kSide * kChannels);
    }
  }

 private:
  void weigh(int pixels) {
    const double scale = static_cast<double>(pixels) / kSide, reach = std::max(scale, 1.0);
    taps_ = static_cast<int>(std::ceil(reach)) * 2 + 1;
    weights_.assign(static_cast<std::size_t>(kSide) * static_cast<std::size_t>(taps_), 0);
    first_.resize(kSide);
    for (int i = 0; i < kSide; ++i) {
      const double centre = (i + 0.5) * scale;
      const int begin = std::max(0, static_cast<int>(centre - reach + 0.5));
      const int end = std::min(pixels, static_cast<int>(centre + reach + 0.5));
      float* weights = weights_.data() + static_cast<std::ptrdiff_t>(i) * taps_;
      double sum = 0;
      for (int k = begin; k < end; ++k) {
        sum += std::max(0.0, 1 - std::abs((k + 0.5 - centre) / reach));
      }
      for (int k = begin; k < end; ++k) {
        weights[k - begin] = static_cast<float>(std::max(0.0, 1 - std::abs((k + 0.5 - centre) / reach)) / sum);
      }
      first_[static_cast<std::size_t>(i)] = std::pair(begin, end - begin);
    }
  }
  void across(const std::uint8_t* row, float* out) const {
    for (int x = 0; x < kSide; ++x, out += kChannels) {
      const auto [begin, count] = first_[static_cast<std::size_t>(x)];
      const float* weights = weights_.data() + static_cast<std::ptrdiff_t>(x) * taps_;
      const std::uint8_t* from = row + static_cast<std::ptrdiff_t>(begin) * kChannels;
      float sums[kChannels] = {};
      for (int k = 0; k < count; ++k) {
        for (int c = 0; c < kChannels; ++c) {
          sums[c] += weights[k] * static_cast<float>(from[k * kChannels + c]);
        }
      }
      std::copy_n(sums, kChannels, out);
    }
  }
  void down(int y, std::uint8_t* out) {
    const auto [begin, count] = first_[static_cast<std::size_t>(y)];
    const float* weights = weights_.data() + static_cast<std::ptrdiff_t>(y) * taps_;
    sums_.assign(static_cast<std::size_t>(kSide) * kChannels, 0.5F);
    for (int k = 0; k < count; ++k) {
      const float* row = rows_.data() + static_cast<std::ptrdiff_t>(begin + k) * kSide * kChannels;
      for (int i = 0; i < kSide * kChannels; ++i) {
        sums_[static_cast<std::size_t>(i)] += weights[k] * row[i];
      }
    }
    for (int i = 0; i < kSide * kChannels; ++i) {
      out[i] = static_cast<std::uint8_t>(std::min(sums_[static_cast<std::size_t>(i)], 255.0F));
    }
  }

  const augment::Image& source_;
  int taps_ = 0;
  std::vector<std::pair<int, int>> first_;  // per output: first source pixel, count
  std::vector<float> weights_, rows_, sums_;
};

}  // namespace

Json resize(const Words& words) {
  const int pixels = static_cast<int>(words.number("pixels", 320));
  augment::Image source;
  source.reshape(pixels, pixels, kChannels);
  for (std::size_t i = 0; i < source.pixels.size(); ++i) {
    source.pixels[i] = static_cast<std::uint8_t>(i * i % 251 + i % 5);
  }
  std::vector<std::uint8_t> ours(static_cast<std::size_t>(kSide) * kSide * kChannels), theirs(ours);
  augment::ResizeScratch scratch;
  const auto side = static_cast<double>(pixels);
  const auto scale = [&] {
    augment::resize(source.view(), {0, 0, side, side}, kSide, kSide, {0, 0, kSide, kSide}, false, ours.data(),
                    static_cast<std::ptrdiff_t>(kSide) * kChannels, scratch);
  };
  FloatTwin twin(source);
  const auto scale_plainly = [&] { twin.run(theirs); };
  scale();
  scale_plainly();
  int most = 0;
  for (std::size_t i = 0; i < ours.size(); ++i) {
    most = std::max(most, std::abs(ours[i] - theirs[i]));
  }
  if (most > 1) {
    fail<DataError>("bench.loader_bench", "the twin's pixels differ by up to {} grey levels: not the same work", most);
  }
  study::PairingOptions options;
  options.seconds = words.seconds();
  options.least_pairs = 3, options.most_pairs = 1000;
  options.block_seconds = 0.02;
  options.clock = study::Clock::kThreadCpu;
  const study::Paired paired = study::time_in_turns({scale_plainly}, {scale}, options);
  return {{"ms", 1e3 * paired.second_seconds}, {"twin_ms", 1e3 * paired.first_seconds}, {"grey_levels", most}};
}

}  // namespace stoker::bench
