// SPDX-License-Identifier: Apache-2.0
// One loop goes through all blocks of a row: the end of a block only selects the table for the next lookup, and damage
// and codes of more than ten bits share one rare branch. Highway compiles this file for processors with BMI2, whose
// shifts take any count from any register.
#include "stoker/data/decode/jpeg_entropy.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "stoker/data/decode/jpeg_entropy.cpp"
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4 | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
// clang-format off: must come before highway.h
#include <hwy/foreach_target.h>
// clang-format on
#include <hwy/highway.h>

#include <algorithm>
#include <cstring>

HWY_BEFORE_NAMESPACE();
namespace stoker::data::HWY_NAMESPACE {

#if HWY_TARGET > HWY_AVX2  // processors that BaselineJpeg is not made for
DecodeRow find_row_decoder() { return nullptr; }
#else
namespace {

// A window of the data. Its top bit is the next one.
struct Window {
  std::uint64_t bits;
  std::uint64_t count;        // of bits that are valid, modulo 64
  const std::uint8_t* bytes;  // behind them
};

// At least 56 bits are valid then. (Fabian Giesen, "Reading bits in far too many ways", part 2, variant 4.)
HWY_INLINE void refill(Window& window) {
  std::uint64_t more;
  std::memcpy(&more, window.bytes, sizeof more);
  window.bits |= __builtin_bswap64(more) >> (window.count & 63);
  window.bytes += ~window.count >> 3 & 7;
  window.count |= 56;
}

HWY_INLINE void drop(Window& window, std::uint64_t bits) {
  window.bits <<= bits & 63;
  window.count -= bits;
}

struct Place {
  const BlockPlan* block;
  const LookupEntry* entries;  // for the next lookup
  std::int64_t last;           // place of the last coefficient
};

// One symbol of at most 27 bits.
struct SingleSymbol {
  std::uint64_t bits;  // 0: not a code, or its coefficient is outside the block
  std::int64_t place;  // behind it
};

HWY_NOINLINE SingleSymbol decode_single(const BlockPlan& block, std::int64_t place, std::uint64_t window,
                                        const std::int16_t* order) {
  const bool is_dc = place == kBeforeBlock;
  const HuffmanCode::Symbol symbol =
      (is_dc ? block.tables->dc : block.tables->ac).find(static_cast<unsigned>(window >> 48));
  if (symbol.bits == 0) {
    return {0, place};
  }
  const int size = symbol.value & 15, run = is_dc ? 0 : symbol.value >> 4;
  if (size == 0 && run == 0 && !is_dc) {
    return {symbol.bits, place + kEndOfBlock};
  }
  place += run + 1;
  if (place > kLast) {
    return {0, place};
  }
  const int value = size == 0 ? 0 : extended(static_cast<int>(window << symbol.bits >> (64 - size)), size);
  block.out[order[place]] = static_cast<std::int16_t>(value);
  return {static_cast<std::uint64_t>(symbol.bits + size), place};
}

// What an entry that leads nowhere stands for.
HWY_NOINLINE SingleSymbol resolve(const Place& from, const LookupEntry& entry, std::uint64_t window,
                                  const std::int16_t* order) {
  if (entry.bits == 0) {
    return decode_single(*from.block, from.last, window, order);
  }
  // The first symbol may have completed the block; the second one then belongs to the next block.
  const bool completed = from.last + entry.first_step == kLast;
  return {completed ? static_cast<std::uint64_t>(entry.code + entry.size()) : 0, kLast};
}

// The value of the first symbol: `size` bits behind its code.
HWY_INLINE std::int16_t first_value(std::uint64_t window, const LookupEntry& entry) {
  const std::uint64_t value = window << (entry.code & 63);
  const std::uint64_t negative = ~static_cast<std::uint64_t>(static_cast<std::int64_t>(value) >> 63);
  return static_cast<std::int16_t>(((value ^ negative) >> (entry.unused & 63) ^ negative) - negative);
}

enum class Outcome : std::uint8_t { kGoOn, kRowEnds, kDamaged };

// Takes one or two symbols.
HWY_INLINE Outcome look_up(Window& window, Place& at, const BlockPlan* end, const std::int16_t* order) {
  const std::uint64_t before = window.bits;
  const LookupEntry& entry = at.entries[before >> (64 - kLookBits)];
  std::int64_t last = at.last + entry.step;
  drop(window, entry.bits);
  std::int16_t* const out = at.block->out;
  out[order[last]] = entry.second;  // before the first value: without a second one it has the same place
  out[order[at.last + entry.first_step]] = first_value(before, entry);
  if (HWY_UNLIKELY((last & kInBlock) == 0)) {
    if (at.block == end) {
      return Outcome::kRowEnds;
    }
    const SingleSymbol symbol = resolve(at, entry, before, order);
    if (symbol.bits == 0) {
      return Outcome::kDamaged;
    }
    window.bits = before << symbol.bits;
    window.count += entry.bits - symbol.bits;
    last = symbol.place;
  }
  const bool ended = last >= kLast;
  const BlockPlan* const next = at.block + 1;
  const LookupEntry* const rest = at.block->tables->rest.data();
  at.entries = ended ? next->tables->first.data() : rest;
  at.block = ended ? next : at.block;
  at.last = ended ? kBeforeBlock : last;
  return Outcome::kGoOn;
}

bool decode_row(const std::uint8_t* data, RowTask& row, const CoefficientOrder& coefficients) {
  const std::int16_t* const order = coefficients.from_place_0();
  Window window{0, 0, data + row.bit / 8};
  refill(window);
  drop(window, row.bit % 8);
  Place at{row.blocks, row.blocks->tables->first.data(), kBeforeBlock};
  Outcome outcome;
  do {  // two lookups take at most 54 bits
    refill(window);
    outcome = look_up(window, at, row.end, order);
    if (HWY_LIKELY(outcome == Outcome::kGoOn)) {
      outcome = look_up(window, at, row.end, order);
    }
  } while (HWY_LIKELY(outcome == Outcome::kGoOn));
  row.bit = static_cast<std::uint64_t>(window.bytes - data) * 8 - (window.count & 63);
  return outcome == Outcome::kRowEnds;
}

}  // namespace

DecodeRow find_row_decoder() { return &decode_row; }
#endif

}  // namespace stoker::data::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stoker::data {

HWY_EXPORT(find_row_decoder);

DecodeRow row_decoder() { return HWY_DYNAMIC_DISPATCH(find_row_decoder)(); }

void ScanData::read(Bytes file, std::size_t scan) {
  constexpr std::size_t kBehind = 64;  // more than a window
  bytes.resize(std::max(bytes.size(), file.size() - scan + kBehind));
  std::uint8_t* to = bytes.data();
  const auto* from = reinterpret_cast<const std::uint8_t*>(file.data()) + scan;
  const auto* const end = reinterpret_cast<const std::uint8_t*>(file.data()) + file.size();
  ending = Ending::kFile;
  while (from < end) {
    const void* const found = std::memchr(from, kMarker, static_cast<std::size_t>(end - from));
    const auto* const marker = found == nullptr ? end : static_cast<const std::uint8_t*>(found);
    to = std::copy(from, marker, to);
    from = marker;
    if (end - from < 2) {
      break;
    }
    if (from[1] != 0) {
      // More than one FF may precede a 0, too, and libjpeg-turbo then reads on.
      ending = from[1] == kEndOfImage ? Ending::kImage : from[1] == kMarker ? Ending::kFile : Ending::kMarker;
      break;
    }
    *to++ = kMarker;
    from += 2;
  }
  size = static_cast<std::size_t>(to - bytes.data());
  std::fill_n(to, kBehind, kMarker);  // no code has only ones
}

}  // namespace stoker::data
#endif
