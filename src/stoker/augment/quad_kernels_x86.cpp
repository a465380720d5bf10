// SPDX-License-Identifier: Apache-2.0
// Resize with dot products of four bytes (vpdpbusd: four unsigned bytes times four signed bytes, added to a 32-bit
// sum), which Debian's Highway does not offer.
//
// A weight of 22 bits is split into three signed digits of 8 bits, weight = low + 256 middle + 65536 high, and four
// taps of a value are adjacent, a quad: sum(p * w) = sum(p * low) + sum(p * middle) << 8 + sum(p * high) << 16. All
// sums are modulo 2^32, and the total fits, so the result is exact.
#include <hwy/base.h>
#include <immintrin.h>

#include <algorithm>
#include <cstring>

#include "stoker/augment/pixel_kernels.h"

// Applies to the functions from here to HWY_POP_ATTRIBUTES. No lambdas and no constructors in between: GCC compiles
// implicit functions for generic x86-64.
HWY_PUSH_ATTRIBUTES("avx512f,avx512bw,avx512vl,avx512vbmi,avx512vnni")

namespace stoker::augment {
namespace {

constexpr int kVector = 64;          // bytes
constexpr int kLanes = 16;           // sums in a vector
constexpr int kRows = 4;             // processed together, so that their results fill a vector of bytes
constexpr int kDigitWords = 4;       // of a quad of weights: low, middle and high digits of four taps, and padding
constexpr int kTable = 4 * kVector;  // for 16 sums and a quad: the order of the row's bytes, and the three digits

struct Digits {
  __m512i low, middle, high;
};

HWY_INLINE __m512i load(const void* from) { return _mm512_loadu_si512(from); }

// One quad per sum; rounded and shifted, not yet clamped to a byte.
HWY_INLINE __m512i value_of(__m512i pixels, const Digits& weights) {
  const __m512i half = _mm512_set1_epi32(1 << (kWeightBits - 1 - 16));
  __m512i sum = _mm512_dpbusd_epi32(half, pixels, weights.high);
  sum = _mm512_dpbusd_epi32(_mm512_slli_epi32(sum, 8), pixels, weights.middle);
  sum = _mm512_dpbusd_epi32(_mm512_slli_epi32(sum, 8), pixels, weights.low);
  return _mm512_srai_epi32(sum, kWeightBits);
}

// The same for any number of quads.
HWY_INLINE Digits no_sums() {
  const __m512i zero = _mm512_setzero_si512();
  return {_mm512_set1_epi32(1 << (kWeightBits - 1)), zero, zero};
}

HWY_INLINE void add(__m512i pixels, const Digits& weights, Digits& sums) {
  sums.low = _mm512_dpbusd_epi32(sums.low, pixels, weights.low);
  sums.middle = _mm512_dpbusd_epi32(sums.middle, pixels, weights.middle);
  sums.high = _mm512_dpbusd_epi32(sums.high, pixels, weights.high);
}

HWY_INLINE __m512i value_of(const Digits& sums) {
  const __m512i upper = _mm512_add_epi32(sums.middle, _mm512_slli_epi32(sums.high, 8));
  return _mm512_srai_epi32(_mm512_add_epi32(sums.low, _mm512_slli_epi32(upper, 8)), kWeightBits);
}

// The bytes of four vectors of values; each block of 16 bytes has four of the first, four of the second, ...
HWY_INLINE __m512i clamped(const __m512i (&values)[kRows]) {
  return _mm512_packus_epi16(_mm512_packs_epi32(values[0], values[1]), _mm512_packs_epi32(values[2], values[3]));
}

// Computes axis.digits from axis.weights, both in quads.
void split(AxisWeights& axis) {
  axis.digits.resize(axis.weights.size());
  // The sign of a byte is carried into the next digit: + 128 carries if the byte is at least 128, ^ 128 reverts it.
  const __m512i carry = _mm512_set1_epi32(0x808080);
  const __m512i by_digit = _mm512_broadcast_i32x4(_mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15));
  for (std::size_t i = 0; i < axis.weights.size(); i += kLanes) {  // taps and entries are multiples of four
    const __m512i bytes = _mm512_xor_si512(_mm512_add_epi32(load(&axis.weights[i]), carry), carry);
    _mm512_storeu_si512(&axis.digits[i], _mm512_shuffle_epi8(bytes, by_digit));
  }
}

// The pixel and the channel of each of 16 values.
struct Lanes {
  alignas(kVector) int pixel[kLanes], channel[kLanes];
};

// Makes the tables of one group of 16 values. False if their source bytes do not fit into a vector.
bool add_group(AxisWeights& axis, int channels, const Lanes& lanes) {
  const __m512i pixel = load(lanes.pixel);
  const __m512i first = _mm512_i32gather_epi32(pixel, axis.first.data(), 4);
  const int begin = _mm512_reduce_min_epi32(first), end = _mm512_reduce_max_epi32(first) + kTapGroup;
  const int count = _mm512_reduce_max_epi32(_mm512_i32gather_epi32(pixel, axis.count.data(), 4));
  if ((end - begin) * channels > kVector) {
    return false;
  }
  const int quads = (count + kTapGroup - 1) / kTapGroup;
  const std::size_t table = axis.tables.size();
  axis.groups.push_back({begin * channels, quads, table});
  axis.tables.resize(table + static_cast<std::size_t>(quads * kTable));
  // Bytes at, at + channels, at + 2 channels, at + 3 channels of each lane.
  const __m512i at = _mm512_add_epi32(
      _mm512_mullo_epi32(_mm512_sub_epi32(first, _mm512_set1_epi32(begin)), _mm512_set1_epi32(channels)),
      load(lanes.channel));
  const __m512i order =
      _mm512_add_epi32(_mm512_mullo_epi32(at, _mm512_set1_epi32(0x01010101)), _mm512_set1_epi32(channels * 0x03020100));
  const __m512i weights = _mm512_mullo_epi32(pixel, _mm512_set1_epi32(axis.taps));  // one word per tap
  for (int quad = 0; quad < quads; ++quad) {
    std::uint8_t* out = axis.tables.data() + table + static_cast<std::size_t>(quad * kTable);
    _mm512_storeu_si512(out, order);
    for (int digit = 0; digit < 3; ++digit) {
      const std::uint32_t* words = axis.digits.data() + quad * kDigitWords + digit;
      _mm512_storeu_si512(out + (1 + digit) * kVector, _mm512_i32gather_epi32(weights, words, 4));
    }
  }
  return true;
}

void prepare_across(AxisWeights& across, int channels) {
  split(across);
  across.groups.clear();
  across.tables.clear();
  const int values = across.outputs * channels;
  int pixel = 0, channel = 0;
  for (int value = 0; value < values; value += kLanes) {
    Lanes lanes;
    for (int lane = 0; lane < kLanes; ++lane) {
      lanes.pixel[lane] = pixel;
      lanes.channel[lane] = channel;
      if (++channel == channels) {
        channel = 0;
        pixel += pixel + 1 < across.outputs ? 1 : 0;  // beyond the last value: any valid pixel
      }
    }
    if (!add_group(across, channels, lanes)) {
      across.groups.clear();
      vector_kernels().prepare_across(across, channels);
      return;
    }
  }
}

HWY_INLINE Digits digits_of(const std::uint8_t* table) {
  return {load(table + kVector), load(table + 2 * kVector), load(table + 3 * kVector)};
}

// 16 bytes of each of `rows` rows, at most four.
HWY_INLINE void store_rows(__m512i bytes, int rows, std::uint8_t* out, std::ptrdiff_t stride) {
  const __m512i by_row = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  const __m512i all = _mm512_permutexvar_epi32(by_row, bytes);
  if (rows == kRows) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out), _mm512_castsi512_si128(all));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + stride), _mm512_extracti32x4_epi32(all, 1));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + 2 * stride), _mm512_extracti32x4_epi32(all, 2));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + 3 * stride), _mm512_extracti32x4_epi32(all, 3));
    return;
  }
  alignas(kVector) std::uint8_t each[kVector];
  _mm512_store_si512(each, all);
  for (int row = 0; row < rows; ++row) {
    std::memcpy(out + row * stride, each + row * 16, 16);
  }
}

// A group of values of four rows; their source bytes begin at from[row] + begin.
HWY_INLINE __m512i scale_by_one(const std::uint8_t* const* from, std::ptrdiff_t begin, __m512i order,
                                const Digits& weights) {
  const __m512i values[kRows] = {value_of(_mm512_permutexvar_epi8(order, load(from[0] + begin)), weights),
                                 value_of(_mm512_permutexvar_epi8(order, load(from[1] + begin)), weights),
                                 value_of(_mm512_permutexvar_epi8(order, load(from[2] + begin)), weights),
                                 value_of(_mm512_permutexvar_epi8(order, load(from[3] + begin)), weights)};
  return clamped(values);
}

HWY_INLINE __m512i scale_by_many(const std::uint8_t* const* from, std::ptrdiff_t begin, int channels,
                                 const std::uint8_t* table, int quads) {
  Digits sums[kRows] = {no_sums(), no_sums(), no_sums(), no_sums()};
  for (int quad = 0; quad < quads; ++quad, begin += kTapGroup * channels, table += kTable) {
    const __m512i order = load(table);
    const Digits weights = digits_of(table);
    add(_mm512_permutexvar_epi8(order, load(from[0] + begin)), weights, sums[0]);
    add(_mm512_permutexvar_epi8(order, load(from[1] + begin)), weights, sums[1]);
    add(_mm512_permutexvar_epi8(order, load(from[2] + begin)), weights, sums[2]);
    add(_mm512_permutexvar_epi8(order, load(from[3] + begin)), weights, sums[3]);
  }
  const __m512i values[kRows] = {value_of(sums[0]), value_of(sums[1]), value_of(sums[2]), value_of(sums[3])};
  return clamped(values);
}

constexpr int kTogether = 16;  // rows whose pixels, results and tables fit into 48 KB of L1 cache

// One group of values of `count` rows, at most kTogether, with one pointer per row.
void scale_group(const std::uint8_t* const* rows, int count, int channels, const AxisWeights& across,
                 const AxisWeights::LaneGroup& group, std::uint8_t* out, std::ptrdiff_t stride) {
  const std::uint8_t* table = across.tables.data() + group.table;
  const __m512i order = load(table);
  const Digits weights = digits_of(table);
  for (int y = 0; y < count; y += kRows) {
    const __m512i bytes = group.quads == 1 ? scale_by_one(rows + y, group.begin, order, weights)
                                           : scale_by_many(rows + y, group.begin, channels, table, group.quads);
    store_rows(bytes, std::min(kRows, count - y), out + y * stride, stride);
  }
}

void scale_rows(const std::uint8_t* const* in, int count, int channels, const AxisWeights& across, std::uint8_t* out,
                std::ptrdiff_t stride) {
  if (across.groups.empty()) {
    vector_kernels().scale_rows(in, count, channels, across, out, stride);
    return;
  }
  for (int y = 0; y < count; y += kTogether) {
    const std::uint8_t* rows[kTogether];
    for (int row = 0; row < kTogether; ++row) {
      rows[row] = in[std::min(y + row, count - 1)];
    }
    std::uint8_t* to = out + y * stride;
    for (const AxisWeights::LaneGroup& group : across.groups) {
      scale_group(rows, std::min(kTogether, count - y), channels, across, group, to, stride);
      to += kLanes;
    }
  }
}

// 64 bytes of each of four rows, as quads of one byte of each.
HWY_INLINE void interleave(const std::uint8_t* from, std::ptrdiff_t stride, __m512i (&quads)[4]) {
  const __m512i a = load(from), b = load(from + stride), c = load(from + 2 * stride), d = load(from + 3 * stride);
  const __m512i ab_low = _mm512_unpacklo_epi8(a, b), ab_high = _mm512_unpackhi_epi8(a, b);
  const __m512i cd_low = _mm512_unpacklo_epi8(c, d), cd_high = _mm512_unpackhi_epi8(c, d);
  quads[0] = _mm512_unpacklo_epi16(ab_low, cd_low);
  quads[1] = _mm512_unpackhi_epi16(ab_low, cd_low);
  quads[2] = _mm512_unpacklo_epi16(ab_high, cd_high);
  quads[3] = _mm512_unpackhi_epi16(ab_high, cd_high);
}

HWY_INLINE Digits everywhere(const std::uint32_t* digits) {
  return {_mm512_set1_epi32(static_cast<int>(digits[0])), _mm512_set1_epi32(static_cast<int>(digits[1])),
          _mm512_set1_epi32(static_cast<int>(digits[2]))};
}

HWY_INLINE void store(__m512i bytes, std::ptrdiff_t count, std::uint8_t* out) {
  if (count >= kVector) {
    _mm512_storeu_si512(out, bytes);
  } else {
    _mm512_mask_storeu_epi8(out, ~__mmask64{0} >> (kVector - count), bytes);
  }
}

void mix_by_one(const std::uint8_t* from, std::ptrdiff_t stride, std::ptrdiff_t bytes, const std::uint32_t* digits,
                std::uint8_t* out) {
  const Digits weights = everywhere(digits);
  for (std::ptrdiff_t x = 0; x < bytes; x += kVector) {
    __m512i quads[4];
    interleave(from + x, stride, quads);
    const __m512i values[4] = {value_of(quads[0], weights), value_of(quads[1], weights), value_of(quads[2], weights),
                               value_of(quads[3], weights)};
    store(clamped(values), bytes - x, out + x);
  }
}

void mix_by_many(const std::uint8_t* from, std::ptrdiff_t stride, std::ptrdiff_t bytes, int count,
                 const std::uint32_t* digits, std::uint8_t* out) {
  for (std::ptrdiff_t x = 0; x < bytes; x += kVector) {
    Digits sums[4] = {no_sums(), no_sums(), no_sums(), no_sums()};
    const std::uint8_t* four = from + x;
    for (int k = 0; k < count; k += kTapGroup, four += kTapGroup * stride) {
      const Digits weights = everywhere(digits + k);
      __m512i quads[4];
      interleave(four, stride, quads);
      add(quads[0], weights, sums[0]);
      add(quads[1], weights, sums[1]);
      add(quads[2], weights, sums[2]);
      add(quads[3], weights, sums[3]);
    }
    const __m512i values[4] = {value_of(sums[0]), value_of(sums[1]), value_of(sums[2]), value_of(sums[3])};
    store(clamped(values), bytes - x, out + x);
  }
}

void mix_rows(const std::uint8_t* rows, std::ptrdiff_t stride, std::ptrdiff_t bytes, const AxisWeights& down,
              std::uint8_t* out, std::ptrdiff_t out_stride) {
  for (int y = 0; y < down.outputs; ++y, out += out_stride) {
    const auto at = static_cast<std::size_t>(y);
    const std::uint8_t* from = rows + down.first[at] * stride;
    const std::uint32_t* digits = down.digits.data() + at * static_cast<std::size_t>(down.taps);
    if (down.count[at] <= kTapGroup) {
      mix_by_one(from, stride, bytes, digits, out);
    } else {
      mix_by_many(from, stride, bytes, down.count[at], digits, out);
    }
  }
}

}  // namespace
}  // namespace stoker::augment

HWY_POP_ATTRIBUTES

namespace stoker::augment {

const PixelKernels* quad_kernels() {
  static const PixelKernels kKernels{.name = "quad",
                                     .prepare_across = prepare_across,
                                     .prepare_down = split,
                                     .scale_rows = scale_rows,
                                     .mix_rows = mix_rows,
                                     .place_rows = vector_kernels().place_rows};
  static const bool there = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                            __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vbmi") &&
                            __builtin_cpu_supports("avx512vnni");
  return there ? &kKernels : nullptr;
}

}  // namespace stoker::augment
