// SPDX-License-Identifier: Apache-2.0
// Highway compiles this file once for each family of processors and selects the best one at run time. Its macros are
// the only conditional compilation in the project.
//
// A weight of 22 bits is split into 15 low and 7 high bits (signed, for filters that go below zero), so that 16-bit
// multiply-and-add-pairs processes two taps at once: sum(p * w) = sum(p * low) + sum(p * high) << 15. All sums are
// modulo 2^32, and the total fits, so the result is exact.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "stoker/augment/vector_kernels.cpp"
#define HWY_WANT_AVX3_DL  // for VBMI
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
// clang-format off: must come before highway.h
#include <hwy/foreach_target.h>
// clang-format on
#include <hwy/highway.h>

#include <algorithm>
#include <cstring>

#include "stoker/augment/pixel_kernels.h"

HWY_BEFORE_NAMESPACE();
namespace stoker::augment::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET == HWY_SCALAR  // a processor without any of the families
const PixelKernels* kernels() { return &plain_kernels(); }
#else
namespace {

void pair_up(AxisWeights& axis) {
  const std::size_t pairs = axis.weights.size() / 2;
  axis.low.resize(pairs);
  axis.high.resize(pairs);
  for (std::size_t i = 0; i < pairs; ++i) {
    const auto a = static_cast<std::uint32_t>(axis.weights[2 * i]),
               b = static_cast<std::uint32_t>(axis.weights[2 * i + 1]);
    constexpr std::uint32_t kLow = 0x7FFF;
    axis.low[i] = (a & kLow) | (b & kLow) << 16;
    axis.high[i] = (a >> 15 & 0xFFFF) | b >> 15 << 16;
  }
}

void pair_up_across(AxisWeights& across, int /*channels*/) { pair_up(across); }

constexpr std::size_t kBlock = 16;  // bytes; shuffles and pairs stay within such blocks
constexpr std::size_t kBlocks = HWY_MAX_BYTES >= 64 ? 4 : HWY_MAX_BYTES >= 32 ? 2 : 1;
constexpr hn::FixedTag<std::uint8_t, kBlock * kBlocks> kBytes;
constexpr hn::Repartition<std::int16_t, decltype(kBytes)> kShorts;
constexpr hn::Repartition<std::int32_t, decltype(kBytes)> kInts;
using Bytes = hn::Vec<decltype(kBytes)>;
using Shorts = hn::Vec<decltype(kShorts)>;
using Ints = hn::Vec<decltype(kInts)>;

// Sums of products of pairs, for low and high bits of the weights. (No constructors and no lambdas here: GCC compiles
// implicit functions for the generic processor.)
struct Sums {
  Ints low, high;
  Ints low_rest, high_rest;  // used if the processor keeps odd pairs separate
};

HWY_INLINE Sums nothing() {
  const Ints zero = hn::Zero(kInts);
  return {zero, zero, zero, zero};
}

HWY_INLINE Shorts both(std::uint32_t weights) {
  return hn::BitCast(kShorts, hn::Set(kInts, static_cast<std::int32_t>(weights)));
}

HWY_INLINE void add(Shorts pixels, Shorts low_weights, Shorts high_weights, Sums& sums) {
  sums.low = hn::ReorderWidenMulAccumulate(kInts, pixels, low_weights, sums.low, sums.low_rest);
  sums.high = hn::ReorderWidenMulAccumulate(kInts, pixels, high_weights, sums.high, sums.high_rest);
}

// Rounded and shifted, not yet clamped to a byte.
HWY_INLINE Ints value(const Sums& sums) {
  const Ints low = hn::RearrangeToOddPlusEven(sums.low, sums.low_rest);
  const Ints high = hn::RearrangeToOddPlusEven(sums.high, sums.high_rest);
  const Ints half = hn::Set(kInts, 1 << (kWeightBits - 1));
  return hn::ShiftRight<kWeightBits>(hn::Add(hn::Add(low, half), hn::ShiftLeft<15>(high)));
}

// 16 bytes of each row, one block per row.
template <typename Tag>
HWY_INLINE hn::Vec<Tag> load_blocks(Tag tag, const std::uint8_t* const* rows, std::ptrdiff_t at) {
  if constexpr (hn::MaxLanes(Tag()) == kBlock) {
    return hn::LoadU(tag, rows[0] + at);
  } else {
    constexpr hn::Half<Tag> kHalf;
    return hn::Combine(tag, load_blocks(kHalf, rows + hn::MaxLanes(kHalf) / kBlock, at), load_blocks(kHalf, rows, at));
  }
}

HWY_INLINE void store_blocks(Bytes values, std::size_t blocks, std::uint8_t* out, std::ptrdiff_t stride) {
  alignas(kBlock * kBlocks) std::uint8_t all[kBlock * kBlocks];
  hn::Store(values, kBytes, all);
  for (std::size_t block = 0; block < blocks; ++block) {
    std::memcpy(out + static_cast<std::ptrdiff_t>(block) * stride, all + block * kBlock, kBlock);
  }
}

Bytes each_block(const std::uint8_t (&bytes)[kBlock]) { return hn::LoadDup128(kBytes, bytes); }

// A block has five RGB pixels and one byte. Extracts the channels of pixels 0 and 1, or 2 and 3, as pairs of 16-bit
// numbers: r0 r1 g0 g1 b0 b1 0 0.
alignas(16) constexpr std::uint8_t kPair[2][kBlock] = {
    {0, 128, 3, 128, 1, 128, 4, 128, 2, 128, 5, 128, 128, 128, 128, 128},
    {6, 128, 9, 128, 7, 128, 10, 128, 8, 128, 11, 128, 128, 128, 128, 128}};
// The six bytes of two pixels r . g . b . x . (16-bit numbers below 256), at the start of the block or after six
// others.
alignas(16) constexpr std::uint8_t kGather[2][kBlock] = {
    {0, 2, 4, 8, 10, 12, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128},
    {128, 128, 128, 128, 128, 128, 0, 2, 4, 8, 10, 12, 128, 128, 128, 128}};

HWY_INLINE Ints one_rgb(const std::uint8_t* const* rows, const AxisWeights& across, std::size_t output) {
  Sums sums = nothing();
  const auto pairs = static_cast<std::size_t>(across.taps) / 2;
  const std::uint32_t *low = across.low.data() + output * pairs, *high = across.high.data() + output * pairs;
  std::ptrdiff_t at = static_cast<std::ptrdiff_t>(across.first[output]) * 3;
  const Bytes first = each_block(kPair[0]), second = each_block(kPair[1]);
  for (int k = 0; k < across.count[output]; k += kTapGroup, at += kTapGroup * 3, low += 2, high += 2) {
    const Bytes pixels = load_blocks(kBytes, rows, at);
    add(hn::BitCast(kShorts, hn::TableLookupBytesOr0(pixels, first)), both(low[0]), both(high[0]), sums);
    add(hn::BitCast(kShorts, hn::TableLookupBytesOr0(pixels, second)), both(low[1]), both(high[1]), sums);
  }
  return value(sums);
}

// 16-bit numbers from 0 to 255, the block of a before that of b.
HWY_INLINE Bytes clamped(Ints a, Ints b) {
  const Shorts ab = hn::ReorderDemote2To(kShorts, a, b);
  return hn::BitCast(kBytes, hn::Min(hn::Max(ab, hn::Zero(kShorts)), hn::Set(kShorts, 255)));
}

// Four pixels of kBlocks rows at a time.
void scale_rgb_rows(const std::uint8_t* const* in, int count, const AxisWeights& across, std::uint8_t* out,
                    std::ptrdiff_t stride) {
  const Bytes front = each_block(kGather[0]), back = each_block(kGather[1]);
  for (int y = 0; y < count; y += static_cast<int>(kBlocks)) {
    const std::uint8_t* rows[kBlocks];
    for (std::size_t block = 0; block < kBlocks; ++block) {
      rows[block] = in[std::min(y + static_cast<int>(block), count - 1)];
    }
    const std::size_t valid = std::min(kBlocks, static_cast<std::size_t>(count - y));
    for (int i = 0; i < across.outputs; i += kTapGroup) {
      const auto at = static_cast<std::size_t>(i);
      const Bytes a = clamped(one_rgb(rows, across, at), one_rgb(rows, across, at + 1));
      const Bytes b = clamped(one_rgb(rows, across, at + 2), one_rgb(rows, across, at + 3));
      const Bytes four = hn::Or(hn::TableLookupBytesOr0(a, front), hn::TableLookupBytesOr0(b, back));
      store_blocks(four, valid, out + y * stride + i * 3, stride);
    }
  }
}

void scale_rows(const std::uint8_t* const* in, int count, int channels, const AxisWeights& across, std::uint8_t* out,
                std::ptrdiff_t stride) {
  if (channels == 3) {
    scale_rgb_rows(in, count, across, out, stride);
  } else {
    plain_kernels().scale_rows(in, count, channels, across, out, stride);
  }
}

void mix_rows(const std::uint8_t* rows, std::ptrdiff_t stride, std::ptrdiff_t bytes, const AxisWeights& down,
              std::uint8_t* out, std::ptrdiff_t out_stride) {
  constexpr hn::Rebind<std::uint8_t, decltype(kShorts)> kHalfOfBytes;
  constexpr auto kStep = static_cast<std::ptrdiff_t>(kBlock * kBlocks / 2);
  const auto pairs = static_cast<std::size_t>(down.taps) / 2;
  for (int y = 0; y < down.outputs; ++y) {
    const auto output = static_cast<std::size_t>(y);
    const std::uint32_t *low = down.low.data() + output * pairs, *high = down.high.data() + output * pairs;
    const int count = down.count[output];
    for (std::ptrdiff_t x = 0; x < bytes; x += kStep) {
      Sums lower = nothing(), upper = nothing();
      const std::uint8_t* from = rows + down.first[output] * stride + x;
      for (int k = 0; k < count; k += 2, from += 2 * stride) {
        const Shorts a = hn::PromoteTo(kShorts, hn::LoadU(kHalfOfBytes, from));
        const Shorts b = hn::PromoteTo(kShorts, hn::LoadU(kHalfOfBytes, k + 1 < count ? from + stride : from));
        const Shorts low_weights = both(low[k / 2]), high_weights = both(high[k / 2]);
        add(hn::InterleaveLower(kShorts, a, b), low_weights, high_weights, lower);
        add(hn::InterleaveUpper(kShorts, a, b), low_weights, high_weights, upper);
      }
      const Shorts mixed = hn::ReorderDemote2To(kShorts, value(lower), value(upper));
      const auto result = hn::DemoteTo(kHalfOfBytes, mixed);
      if (x + kStep <= bytes) {
        hn::StoreU(result, kHalfOfBytes, out + y * out_stride + x);
      } else {
        std::uint8_t last[kStep];
        hn::StoreU(result, kHalfOfBytes, last);
        std::memcpy(out + y * out_stride + x, last, static_cast<std::size_t>(bytes - x));
      }
    }
  }
}

// The area above and below the source rows.
HWY_INLINE void blacken_other_rows(ImageView source, const Placing& out) {
  std::uint8_t* below = out.first_row() + source.height * out.stride;
  std::memset(out.pixels, 0, static_cast<std::size_t>(out.first_row() - out.pixels));
  std::memset(below, 0, static_cast<std::size_t>(out.pixels + out.bytes() - below));
}

#if HWY_TARGET <= HWY_AVX3_DL  // targets so low are x86 processors

// Any permutation of 64 bytes in one instruction (VBMI), with masked bytes neither read nor written. Highway 1.0.3 does
// not offer these.
constexpr std::ptrdiff_t kVector = 64;

// Ones for bytes begin ... end - 1 of a vector; the range may exceed the vector.
HWY_INLINE std::uint64_t bytes_between(std::ptrdiff_t begin, std::ptrdiff_t end) {
  const std::ptrdiff_t first = std::clamp<std::ptrdiff_t>(begin, 0, kVector),
                       count = std::clamp<std::ptrdiff_t>(end, 0, kVector) - first;
  return count <= 0 ? 0 : (~std::uint64_t{0} >> (kVector - count)) << first;
}

HWY_INLINE __m512i piece_of(std::uintptr_t in, std::uint64_t read, __m512i order) {
  return _mm512_permutexvar_epi8(order, _mm512_maskz_loadu_epi8(read, reinterpret_cast<const void*>(in)));
}

// A row in pieces of `step` bytes: byte i of the piece at x is byte order[i] of the bytes at from + direction * x in
// the source row, or black outside. Whole vectors are written if the next piece or row overwrites the surplus, since
// masked stores take much longer.
HWY_INLINE void place_pieces(ImageView source, std::ptrdiff_t from, std::ptrdiff_t direction, __m512i order,
                             std::ptrdiff_t step, std::uint8_t* out, std::ptrdiff_t stride) {
  constexpr std::ptrdiff_t kMost = 8;  // pieces of a row at a time
  const auto width = static_cast<std::ptrdiff_t>(source.width) * source.channels;
  for (std::ptrdiff_t x = 0; x < stride; x += kMost * step) {
    const std::ptrdiff_t count = std::min(kMost, (stride - x + step - 1) / step), end = x + (count - 1) * step;
    std::uint64_t read[kMost];
    for (std::ptrdiff_t i = 0; i < count; ++i) {
      const std::ptrdiff_t at = from + direction * (x + i * step);
      read[i] = bytes_between(-at, width - at);
    }
    const std::uint64_t last = bytes_between(0, std::min(step, stride - end));
    // Rows followed by enough output that their last piece may be a whole vector.
    const std::ptrdiff_t free_rows = x > 0 || end + step < stride ? 0 : source.height - (end + kVector - 1) / stride;
    // As a number: the address before the first byte of the row may not be valid memory.
    const std::uintptr_t in =
        reinterpret_cast<std::uintptr_t>(source.pixels) + static_cast<std::uintptr_t>(from + direction * x);
    for (std::ptrdiff_t y = 0; y < source.height; ++y) {
      std::uintptr_t piece = in + static_cast<std::uintptr_t>(y * source.stride);
      std::uint8_t* to = out + y * stride + x;
      for (std::ptrdiff_t i = 0; i + 1 < count;
           ++i, to += step, piece += static_cast<std::uintptr_t>(direction * step)) {
        _mm512_storeu_si512(to, piece_of(piece, read[i], order));
      }
      const __m512i placed = piece_of(piece, read[count - 1], order);
      if (y < free_rows) {
        _mm512_storeu_si512(to, placed);
      } else {
        _mm512_mask_storeu_epi8(to, last, placed);
      }
    }
  }
}

// Rows with the same distance in source and output, in order: one run of bytes, with black beside, above and below the
// rows. False if the masks repeat too rarely to be worth computing.
HWY_INLINE bool place_run(ImageView source, const Placing& out) {
  constexpr std::ptrdiff_t kMost = 24, kWorthIt = 4;  // masks; minimum number of uses of each
  const std::ptrdiff_t stride = out.stride, bytes = out.bytes();
  const auto width = static_cast<std::ptrdiff_t>(source.width) * source.channels;
  if (source.stride != stride || stride < kVector) {
    return false;
  }
  std::uint64_t read[kMost];
  std::ptrdiff_t masks = 0, column = 0;  // column of the row where a vector begins
  do {
    if (masks == kMost || masks * kWorthIt * kVector > bytes) {
      return false;
    }
    read[masks++] = bytes_between(out.before - column, out.before - column + width) |
                    bytes_between(out.before - column + stride, out.before - column + stride + width);
    column += column + kVector < stride ? kVector : kVector - stride;
  } while (column != 0);
  const std::ptrdiff_t first = out.above * stride, last = first + source.height * stride;
  const std::uintptr_t in = reinterpret_cast<std::uintptr_t>(source.pixels) - static_cast<std::uintptr_t>(first) -
                            static_cast<std::uintptr_t>(out.before);
  std::ptrdiff_t mask = 0;
  for (std::ptrdiff_t at = 0; at < bytes; at += kVector, mask = mask + 1 == masks ? 0 : mask + 1) {
    const bool within = first <= at && at + kVector <= last;
    const std::uint64_t wanted = within ? read[mask] : read[mask] & bytes_between(first - at, last - at);
    const auto* from = reinterpret_cast<const void*>(in + static_cast<std::uintptr_t>(at));
    const __m512i placed = _mm512_maskz_loadu_epi8(wanted, from);
    if (at + kVector <= bytes) {
      _mm512_storeu_si512(out.pixels + at, placed);
    } else {
      _mm512_mask_storeu_epi8(out.pixels + at, bytes_between(0, bytes - at), placed);
    }
  }
  return true;
}

// 21 RGB pixels in reverse order, or bytes unchanged.
struct ByteOrders {
  alignas(kVector) std::uint8_t reversed[kVector], same[kVector];
};
constexpr ByteOrders byte_orders() {
  ByteOrders orders{};
  for (int i = 0; i < kVector; ++i) {
    orders.same[i] = static_cast<std::uint8_t>(i);
    orders.reversed[i] = static_cast<std::uint8_t>(i == kVector - 1 ? i : 3 * (20 - i / 3) + i % 3);
  }
  return orders;
}
alignas(kVector) constexpr ByteOrders kOrders = byte_orders();

void place_rows(ImageView source, bool mirrored, const Placing& out) {
  constexpr std::ptrdiff_t kStep = 63;  // bytes of 21 pixels
  if (mirrored && source.channels != 3) {
    plain_kernels().place_rows(source, mirrored, out);
    return;
  }
  if (!mirrored && place_run(source, out)) {
    return;
  }
  blacken_other_rows(source, out);
  if (mirrored) {
    const std::ptrdiff_t from = static_cast<std::ptrdiff_t>(source.width) * 3 + out.before - kStep;
    place_pieces(source, from, -1, _mm512_load_si512(kOrders.reversed), kStep, out.first_row(), out.stride);
  } else {
    place_pieces(source, -out.before, 1, _mm512_load_si512(kOrders.same), kVector, out.first_row(), out.stride);
  }
}

#else

// Five pixels of a block in reverse order.
alignas(16) constexpr std::uint8_t kReversed[kBlock] = {12, 13, 14, 9, 10, 11, 6, 7, 8, 3, 4, 5, 0, 1, 2, 128};

HWY_INLINE void mirror_rgb(const std::uint8_t* row, int width, std::uint8_t* out) {
  constexpr hn::FixedTag<std::uint8_t, kBlock> kOne;
  const auto reversed = hn::Load(kOne, kReversed);
  int left = width - 1;  // remaining pixels
  std::memcpy(out, row + left * 3, 3);
  std::uint8_t* to = out + 3;
  // A block has one byte more than five pixels: it belongs to an existing pixel and is overwritten by the next block.
  for (; left > 5; left -= 5, to += 15) {
    hn::StoreU(hn::TableLookupBytesOr0(hn::LoadU(kOne, row + (left - 5) * 3), reversed), kOne, to);
  }
  std::uint8_t last[kBlock];
  hn::StoreU(hn::TableLookupBytesOr0(hn::LoadU(kOne, row), reversed), kOne, last);
  std::memcpy(out + width * 3 - 15, last, 15);  // some pixels are written again
}

// At least one block, without a call, which would take longer than the copy for a row of a small image.
HWY_INLINE void copy_bytes(const std::uint8_t* in, std::size_t count, std::uint8_t* out) {
  for (std::size_t i = 0; i + kBlock <= count; i += kBlock) {
    std::memcpy(out + i, in + i, kBlock);
  }
  std::memcpy(out + count - kBlock, in + count - kBlock, kBlock);
}

void place_rows(ImageView source, bool mirrored, const Placing& out) {
  const auto width = static_cast<std::size_t>(source.width * source.channels);
  if (mirrored ? source.channels != 3 || source.width < 7 : width < kBlock) {
    plain_kernels().place_rows(source, mirrored, out);
    return;
  }
  blacken_other_rows(source, out);
  const auto before = static_cast<std::size_t>(out.before),
             behind = static_cast<std::size_t>(out.stride) - before - width;
  std::uint8_t* row = out.first_row();
  for (int y = 0; y < source.height; ++y, row += out.stride) {
    std::memset(row, 0, before);
    if (mirrored) {
      mirror_rgb(source.row(y), source.width, row + before);
    } else {
      copy_bytes(source.row(y), width, row + before);
    }
    std::memset(row + before + width, 0, behind);
  }
}

#endif

}  // namespace

const PixelKernels* kernels() {
  static constexpr PixelKernels kKernels{.name = "vector",
                                         .prepare_across = pair_up_across,
                                         .prepare_down = pair_up,
                                         .scale_rows = scale_rows,
                                         .mix_rows = mix_rows,
                                         .place_rows = place_rows};
  return &kKernels;
}

#endif
}  // namespace stoker::augment::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stoker::augment {

HWY_EXPORT(kernels);

const PixelKernels& vector_kernels() {
  static const PixelKernels& best = *HWY_DYNAMIC_DISPATCH(kernels)();
  return best;
}

}  // namespace stoker::augment
#endif
