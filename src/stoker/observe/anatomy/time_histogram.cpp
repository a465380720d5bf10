// SPDX-License-Identifier: Apache-2.0
#include "stoker/observe/anatomy/time_histogram.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace stoker::observe {
namespace {

constexpr int kBits = 5;  // 32 bins per power of two
constexpr std::uint64_t kPerOctave = std::uint64_t{1} << kBits;
constexpr int kOctaves = 43;  // nanoseconds up to 2^43: 8,796 s
constexpr std::size_t kBins = kPerOctave * (kOctaves - kBits + 1);

std::size_t bin_of(std::uint64_t ns) {
  const int top = static_cast<int>(std::bit_width(ns)) - 1;
  if (top < kBits) {
    return ns;
  }
  const auto octave = static_cast<std::uint64_t>(top - kBits + 1);
  return std::min<std::size_t>(octave * kPerOctave + ((ns >> (top - kBits)) & (kPerOctave - 1)), kBins - 1);
}

// The middle of a bin, in seconds.
double middle(std::size_t bin) {
  const std::uint64_t octave = bin / kPerOctave, place = bin % kPerOctave;
  if (octave == 0) {
    return static_cast<double>(place) * 1e-9;
  }
  return std::ldexp(static_cast<double>(kPerOctave + place) + 0.5, static_cast<int>(octave) - 1) * 1e-9;
}

}  // namespace

TimeHistogram::TimeHistogram() : bins_(kBins) {}

void TimeHistogram::add(double seconds) {
  constexpr double kMost = 8000;
  ++bins_[bin_of(seconds > 0 ? static_cast<std::uint64_t>(std::min(seconds, kMost) * 1e9) : 0)];
  ++count_;
}

void TimeHistogram::clear() {
  std::ranges::fill(bins_, 0);
  count_ = 0;
}

double TimeHistogram::quantile(double share) const {
  if (count_ == 0) {
    return -1;
  }
  const auto rank = static_cast<std::int64_t>(std::ceil(share * static_cast<double>(count_)));
  std::int64_t seen = 0;
  for (std::size_t bin = 0; bin < kBins; ++bin) {
    seen += bins_[bin];
    if (seen >= std::max<std::int64_t>(rank, 1)) {
      return middle(bin);
    }
  }
  return middle(kBins - 1);
}

}  // namespace stoker::observe
