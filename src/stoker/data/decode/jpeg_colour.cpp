// SPDX-License-Identifier: Apache-2.0
// Formulas: h2v1_fancy_upsample, h1v2_fancy_upsample and h2v2_fancy_upsample of jdsample.c, ycc_rgb_convert of
// jdcolor.c. Highway compiles this file once for each family of processors.
#include "stoker/data/decode/jpeg_colour.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "stoker/data/decode/jpeg_colour.cpp"
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4 | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
// clang-format off: must come before highway.h
#include <hwy/foreach_target.h>
// clang-format on
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace stoker::data::HWY_NAMESPACE {

#if HWY_TARGET > HWY_AVX2  // processors that BaselineJpeg is not made for
const ColourKernels* find_colours() { return nullptr; }
#else
namespace {

namespace hn = hwy::HWY_NAMESPACE;
constexpr hn::ScalableTag<std::uint8_t> kBytes;
constexpr hn::Half<decltype(kBytes)> kHalf;
constexpr hn::Repartition<std::uint16_t, decltype(kBytes)> kWords;
constexpr hn::Repartition<std::int16_t, decltype(kBytes)> kShorts;
constexpr hn::Repartition<std::int32_t, decltype(kBytes)> kInts;
using Words = hn::Vec<decltype(kWords)>;
using Shorts = hn::Vec<decltype(kShorts)>;
using Ints = hn::Vec<decltype(kInts)>;
constexpr int kLanes = HWY_MAX_BYTES / 2;

HWY_INLINE Words load(const std::uint8_t* from) { return hn::PromoteTo(kWords, hn::LoadU(kHalf, from)); }
HWY_INLINE Words thrice(Words a) { return hn::Add(a, hn::Add(a, a)); }
HWY_INLINE Words weighted(const std::uint8_t* near, const std::uint8_t* far) {
  return hn::Add(thrice(load(near)), load(far));
}

// even, odd, even, odd, ...
HWY_INLINE void store_pairs(Words even, Words odd, std::uint8_t* out) {
  hn::StoreU(hn::BitCast(kBytes, hn::Or(even, hn::ShiftLeft<8>(odd))), kBytes, out);
}

// Twice as wide: output 2i lies between inputs i - 1 and i, output 2i + 1 between i and i + 1.
void widen(const std::uint8_t* row, int width, std::uint8_t* out) {
  const Words one = hn::Set(kWords, 1), two = hn::Set(kWords, 2);
  for (int i = 0; i < width; i += kLanes) {
    const Words here = thrice(load(row + i));
    store_pairs(hn::ShiftRight<2>(hn::Add(hn::Add(here, load(row + i - 1)), one)),
                hn::ShiftRight<2>(hn::Add(hn::Add(here, load(row + i + 1)), two)), out + 2 * i);
  }
}

// An output between two lines.
void between(const std::uint8_t* near, const std::uint8_t* far, bool below, int width, std::uint8_t* out) {
  const Words add = hn::Set(kWords, below ? 2 : 1);
  for (int i = 0; i < width; i += kLanes) {
    const Words sum = hn::ShiftRight<2>(hn::Add(weighted(near + i, far + i), add));
    hn::StoreU(hn::DemoteTo(kHalf, hn::BitCast(kShorts, sum)), kHalf, out + i);
  }
}

// Both at once.
void widen_between(const std::uint8_t* near, const std::uint8_t* far, int width, std::uint8_t* out) {
  const Words seven = hn::Set(kWords, 7), eight = hn::Set(kWords, 8);
  for (int i = 0; i < width; i += kLanes) {
    const Words here = thrice(weighted(near + i, far + i));
    store_pairs(hn::ShiftRight<4>(hn::Add(hn::Add(here, weighted(near + i - 1, far + i - 1)), eight)),
                hn::ShiftRight<4>(hn::Add(hn::Add(here, weighted(near + i + 1, far + i + 1)), seven)), out + 2 * i);
  }
}

// Rounded value * kFactor / 2^16, the product of 17 bits and 15 bits.
template <int kFactor>
HWY_INLINE Shorts scaled(Shorts value) {
  const Shorts product = hn::MulHigh(hn::Add(value, value), hn::Set(kShorts, kFactor));
  return hn::ShiftRight<1>(hn::Add(product, hn::Set(kShorts, 1)));
}

// (blue * kBlue + red * kRed + 2^15) / 2^16 for half of the lanes
HWY_INLINE Ints green_part(Shorts pairs) {
  constexpr std::uint32_t kBlue = static_cast<std::uint16_t>(-22554), kRed = 65536 - 46802;  // 0.34414, 1 - 0.71414
  const Shorts weights = hn::BitCast(kShorts, hn::Set(kInts, static_cast<std::int32_t>(kBlue | kRed << 16)));
  Ints unused = hn::Zero(kInts);
  return hn::ShiftRight<16>(hn::ReorderWidenMulAccumulate(kInts, pairs, weights, hn::Set(kInts, 1 << 15), unused));
}

struct Rgb {
  hn::Vec<decltype(kHalf)> red, green, blue;
};

HWY_INLINE Rgb converted(const std::uint8_t* luma, const std::uint8_t* blue, const std::uint8_t* red) {
  const Shorts y = hn::BitCast(kShorts, load(luma)), centre = hn::Set(kShorts, 128);
  const Shorts b = hn::Sub(hn::BitCast(kShorts, load(blue)), centre);
  const Shorts r = hn::Sub(hn::BitCast(kShorts, load(red)), centre);
  const Shorts from_red = hn::Add(r, scaled<91881 - 65536>(r));                 // 1.402
  const Shorts from_blue = hn::Add(hn::Add(b, b), scaled<116130 - 131072>(b));  // 1.772
  const Shorts green = hn::Sub(hn::ReorderDemote2To(kShorts, green_part(hn::InterleaveLower(kShorts, b, r)),
                                                    green_part(hn::InterleaveUpper(kShorts, b, r))),
                               r);
  return {hn::DemoteTo(kHalf, hn::Add(y, from_red)), hn::DemoteTo(kHalf, hn::Add(y, green)),
          hn::DemoteTo(kHalf, hn::Add(y, from_blue))};
}

// A line of chroma at full resolution, from the left column on.
const std::uint8_t* full(const ColourLine& line, const ColourLine::Chroma& chroma, std::uint8_t* room) {
  if (!line.half_across) {
    if (!line.half_down) {
      return chroma.near + line.left;
    }
    between(chroma.near + line.left, chroma.far + line.left, line.below, line.width, room);
    return room;
  }
  const int left = line.left / 2, width = line.width / 2 + 1;
  if (line.half_down) {
    widen_between(chroma.near + left, chroma.far + left, width, room);
  } else {
    widen(chroma.near + left, width, room);
  }
  return room + line.left % 2;
}

void to_rgb(const ColourLine& line, std::uint8_t* room, std::uint8_t* rgb) {
  const std::uint8_t* const luma = line.luma + line.left;
  const std::uint8_t* const blue = full(line, line.chroma[0], room);
  const std::uint8_t* const red = full(line, line.chroma[1], room + line.width + kLineSlack);
  for (int i = 0; i < line.width; i += 2 * kLanes) {
    const Rgb low = converted(luma + i, blue + i, red + i);
    const Rgb high = converted(luma + i + kLanes, blue + i + kLanes, red + i + kLanes);
    hn::StoreInterleaved3(hn::Combine(kBytes, high.red, low.red), hn::Combine(kBytes, high.green, low.green),
                          hn::Combine(kBytes, high.blue, low.blue), kBytes, rgb + 3 * i);
  }
}

void repeat(const std::uint8_t* grey, int width, std::uint8_t* rgb) {
  for (int i = 0; i < width; i += 2 * kLanes) {
    const auto v = hn::LoadU(kBytes, grey + i);
    hn::StoreInterleaved3(v, v, v, kBytes, rgb + 3 * i);
  }
}

constexpr ColourKernels kKernels = {&to_rgb, &repeat};

}  // namespace

const ColourKernels* find_colours() { return &kKernels; }
#endif

}  // namespace stoker::data::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stoker::data {

HWY_EXPORT(find_colours);

const ColourKernels* colour_kernels() { return HWY_DYNAMIC_DISPATCH(find_colours)(); }

}  // namespace stoker::data
#endif
