// SPDX-License-Identifier: Apache-2.0
// Loeffler, Ligtenberg and Moschytz, "Practical fast 1-D DCT algorithms with 11 multiplications" (1989), in the form of
// jidctint.c: each product of a rotation is one multiply-and-add of a pair. Highway compiles this file once for each
// family of processors. Lane i of block b of a vector is column i of block b of a group.
#include "stoker/data/decode/jpeg_transform.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "stoker/data/decode/jpeg_transform.cpp"
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4 | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
// clang-format off: must come before highway.h
#include <hwy/foreach_target.h>
// clang-format on
#include <hwy/highway.h>

#include <algorithm>

HWY_BEFORE_NAMESPACE();
namespace stoker::data::HWY_NAMESPACE {

#if HWY_TARGET > HWY_AVX2  // processors that BaselineJpeg is not made for
TransformKernel find_transform() { return {}; }
#else
namespace {

namespace hn = hwy::HWY_NAMESPACE;
constexpr hn::ScalableTag<std::int16_t> kShorts;
constexpr hn::Repartition<std::int32_t, decltype(kShorts)> kInts;
constexpr hn::Repartition<std::uint8_t, decltype(kShorts)> kBytes;
using Shorts = hn::Vec<decltype(kShorts)>;
using Ints = hn::Vec<decltype(kInts)>;
using Bytes = hn::Vec<decltype(kBytes)>;
constexpr int kLanes = HWY_MAX_BYTES / 2, kBlocks = kLanes / kBlockSide;

// Constants of jidctint.c: 13 bits of fraction.
constexpr int kFraction = 13, kExtra = 2;  // kExtra: bits that the first pass keeps
constexpr int k0298 = 2446, k0390 = 3196, k0541 = 4433, k0765 = 6270, k0899 = 7373, k1175 = 9633, k1501 = 12299,
              k1847 = 15137, k1961 = 16069, k2053 = 16819, k2562 = 20995, k3072 = 25172;

// The 16 products-and-sums of a pair of vectors: low and high half of each block.
struct Halves {
  Ints low, high;
};

HWY_INLINE Halves plus(Halves a, Halves b) { return {hn::Add(a.low, b.low), hn::Add(a.high, b.high)}; }
HWY_INLINE Halves minus(Halves a, Halves b) { return {hn::Sub(a.low, b.low), hn::Sub(a.high, b.high)}; }

// a * first + b * second.
template <int kFirst, int kSecond>
HWY_INLINE Halves rotated(Shorts low, Shorts high) {
  constexpr std::uint32_t kPair = (kFirst & 0xFFFF) | static_cast<std::uint32_t>(kSecond & 0xFFFF) << 16;
  const Shorts weights = hn::BitCast(kShorts, hn::Set(kInts, static_cast<std::int32_t>(kPair)));
  const Ints zero = hn::Zero(kInts);
  Ints unused = zero;
  return {hn::ReorderWidenMulAccumulate(kInts, low, weights, zero, unused),
          hn::ReorderWidenMulAccumulate(kInts, high, weights, zero, unused)};
}

// value << kFraction
HWY_INLINE Halves widened(Shorts value) {
  const Shorts zero = hn::Zero(kShorts);
  return {hn::ShiftRight<16 - kFraction>(hn::BitCast(kInts, hn::InterleaveLower(kShorts, zero, value))),
          hn::ShiftRight<16 - kFraction>(hn::BitCast(kInts, hn::InterleaveUpper(kShorts, zero, value)))};
}

template <int kShift>
HWY_INLINE Shorts descaled(Halves value) {
  const Ints half = hn::Set(kInts, 1 << (kShift - 1));
  return hn::ReorderDemote2To(kShorts, hn::ShiftRight<kShift>(hn::Add(value.low, half)),
                              hn::ShiftRight<kShift>(hn::Add(value.high, half)));
}

// One pass over all columns.
template <int kShift>
HWY_INLINE void transform_columns(Shorts (&x)[8]) {
  const Shorts low26 = hn::InterleaveLower(kShorts, x[2], x[6]), high26 = hn::InterleaveUpper(kShorts, x[2], x[6]);
  const Halves even2 = rotated<k0541, k0541 - k1847>(low26, high26);
  const Halves even3 = rotated<k0541 + k0765, k0541>(low26, high26);
  const Halves even0 = widened(hn::Add(x[0], x[4])), even1 = widened(hn::Sub(x[0], x[4]));
  const Halves sum0 = plus(even0, even3), sum3 = minus(even0, even3);
  const Halves sum1 = plus(even1, even2), sum2 = minus(even1, even2);

  const Shorts z3 = hn::Add(x[7], x[3]), z4 = hn::Add(x[5], x[1]);
  const Shorts low34 = hn::InterleaveLower(kShorts, z3, z4), high34 = hn::InterleaveUpper(kShorts, z3, z4);
  const Halves shared3 = rotated<k1175 - k1961, k1175>(low34, high34);
  const Halves shared4 = rotated<k1175, k1175 - k0390>(low34, high34);
  const Shorts low71 = hn::InterleaveLower(kShorts, x[7], x[1]), high71 = hn::InterleaveUpper(kShorts, x[7], x[1]);
  const Shorts low53 = hn::InterleaveLower(kShorts, x[5], x[3]), high53 = hn::InterleaveUpper(kShorts, x[5], x[3]);
  const Halves odd0 = plus(rotated<k0298 - k0899, -k0899>(low71, high71), shared3);
  const Halves odd1 = plus(rotated<k2053 - k2562, -k2562>(low53, high53), shared4);
  const Halves odd2 = plus(rotated<-k2562, k3072 - k2562>(low53, high53), shared3);
  const Halves odd3 = plus(rotated<-k0899, k1501 - k0899>(low71, high71), shared4);

  x[0] = descaled<kShift>(plus(sum0, odd3));
  x[7] = descaled<kShift>(minus(sum0, odd3));
  x[1] = descaled<kShift>(plus(sum1, odd2));
  x[6] = descaled<kShift>(minus(sum1, odd2));
  x[2] = descaled<kShift>(plus(sum2, odd1));
  x[5] = descaled<kShift>(minus(sum2, odd1));
  x[3] = descaled<kShift>(plus(sum3, odd0));
  x[4] = descaled<kShift>(minus(sum3, odd0));
}

// Transposes the 8 x 8 values of each block. The place of a value is three bits of its row, then three of its column.
// Each of three equal steps rotates it by one bit.
HWY_INLINE void transpose(Shorts (&x)[8]) {
  for (int bit = 0; bit < 3; ++bit) {
    Shorts turned[8];
    for (int i = 0; i < 4; ++i) {
      turned[2 * i] = hn::InterleaveLower(kShorts, x[i], x[i + 4]);
      turned[2 * i + 1] = hn::InterleaveUpper(kShorts, x[i], x[i + 4]);
    }
    std::copy_n(turned, 8, x);
  }
}

// Saturated to a byte, 128 added; each block has 8 bytes of a, then 8 of b.
HWY_INLINE Bytes to_bytes(Shorts a, Shorts b) {
#if HWY_TARGET <= HWY_AVX3
  const Bytes both{_mm512_packs_epi16(a.raw, b.raw)};
#else
  const Bytes both{_mm256_packs_epi16(a.raw, b.raw)};
#endif
  return hn::Xor(both, hn::Set(kBytes, 0x80));
}

// Rows y and y + 1 of a group.
HWY_INLINE void store_rows(Shorts a, Shorts b, std::uint8_t* out, std::ptrdiff_t stride) {
  alignas(64) static constexpr std::int32_t kRows[16] = {0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15};
  alignas(32) static constexpr std::int32_t kTwoBlocks[8] = {0, 1, 4, 5, 2, 3, 6, 7};
  const auto order = hn::SetTableIndices(kInts, kBlocks == 4 ? kRows : kTwoBlocks);
  const Bytes rows = hn::BitCast(kBytes, hn::TableLookupLanes(hn::BitCast(kInts, to_bytes(a, b)), order));
  constexpr hn::Half<decltype(kBytes)> kRow;
  hn::StoreU(hn::LowerHalf(kRow, rows), kRow, out);
  hn::StoreU(hn::UpperHalf(kRow, rows), kRow, out + stride);
}

bool transform_groups(std::int16_t* coefficients, int groups, const std::uint16_t* quantiser, std::uint8_t* out,
                      std::ptrdiff_t stride) {
  Shorts steps[8];
  constexpr hn::FixedTag<std::int16_t, kBlockSide> kOne;
  for (int y = 0; y < kBlockSide; ++y) {
    const auto* const row = reinterpret_cast<const std::int16_t*>(quantiser + y * kBlockSide);
#if HWY_TARGET <= HWY_AVX3
    steps[y] = Shorts{_mm512_broadcast_i32x4(hn::LoadU(kOne, row).raw)};
#else
    steps[y] = Shorts{_mm256_broadcastsi128_si256(hn::LoadU(kOne, row).raw)};
#endif
  }
  const Shorts shifted = hn::ShiftLeft<kExtra>(steps[0]);
  Shorts large = hn::Zero(kShorts);
  for (int group = 0; group < groups; ++group, coefficients += kBlockSize * kBlocks, out += kBlockSide * kBlocks) {
    Shorts x[8];
    for (int y = 0; y < kBlockSide; ++y) {
      x[y] = hn::Load(kShorts, coefficients + y * kLanes);
      hn::Store(hn::Zero(kShorts), kShorts, coefficients + y * kLanes);
    }
    // Whether the first row, shifted by the shortcut, leaves 16 bits.
    large = hn::Or(large, hn::Xor(hn::MulHigh(x[0], shifted), hn::ShiftRight<15>(hn::Mul(x[0], shifted))));
    for (int y = 0; y < kBlockSide; ++y) {
      x[y] = hn::Mul(x[y], steps[y]);
    }
    transform_columns<kFraction - kExtra>(x);
    transpose(x);
    transform_columns<kFraction + kExtra + 3>(x);
    transpose(x);
    for (int y = 0; y < kBlockSide; y += 2) {
      store_rows(x[y], x[y + 1], out + y * stride, stride);
    }
  }
  return hn::AllTrue(kShorts, hn::Eq(large, hn::Zero(kShorts)));
}

}  // namespace

TransformKernel find_transform() { return {kBlocks, &transform_groups}; }
#endif

}  // namespace stoker::data::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stoker::data {

HWY_EXPORT(find_transform);

TransformKernel transform_kernel() { return HWY_DYNAMIC_DISPATCH(find_transform)(); }

}  // namespace stoker::data
#endif
