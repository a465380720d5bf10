// SPDX-License-Identifier: Apache-2.0
#include "stoker/data/decode/jpeg_tables.h"

#include <algorithm>

namespace stoker::data {
namespace {

// Row * 8 + column of the coefficient at each place of the zigzag (T.81, figure A.6).
constexpr std::array<std::uint8_t, kBlockSize> kNaturalOrder = {
    0,  1,  8,  16, 9,  2,  3,  10, 17, 24, 32, 25, 18, 11, 4,  5,  12, 19, 26, 33, 40, 48,
    41, 34, 27, 20, 13, 6,  7,  14, 21, 28, 35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23,
    30, 37, 44, 51, 58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63};

constexpr int kMaxCode = 16;                     // bits
constexpr int kMaxDcSize = 11, kMaxAcSize = 10;  // bits of a value in 8-bit images (T.81, F.1.2)
constexpr int kEndOfBlockSymbol = 0x00, kSixteenZeros = 0xF0;

int value_of(HuffmanCodes codes, std::size_t i) { return std::to_integer<int>(codes[i]); }

int step_of(HuffmanCode::Symbol ac) { return ac.value == kEndOfBlockSymbol ? kEndOfBlock : (ac.value >> 4) + 1; }

// The second symbol of an entry if it fits. after: the bits behind the first one, followed by others.
void add_second(LookupEntry& entry, HuffmanCode::Symbol symbol, int after) {
  const int size = symbol.value & 15, bits = symbol.bits + size;
  if (symbol.bits == 0 || entry.bits + bits > kLookBits) {
    return;
  }
  entry.bits = static_cast<std::uint8_t>(entry.bits + bits);
  entry.step = static_cast<std::int16_t>(entry.step + step_of(symbol));
  if (size > 0) {
    entry.second = static_cast<std::int16_t>(extended(after >> (kLookBits - bits) & ((1 << size) - 1), size));
  }
}

constexpr LookupEntry kIrregular = {.first_step = kNowhere, .step = kNowhere};

// The entry for kLookBits bits. ac: codes of the second symbol.
LookupEntry entry_of(const HuffmanCode& code, HuffmanCode::Kind kind, const HuffmanCode& ac, int bits) {
  const HuffmanCode::Symbol symbol = code.by_bits[static_cast<std::size_t>(bits)];
  if (symbol.bits == 0) {
    return kIrregular;
  }
  const int size = symbol.value & 15;
  const int step = kind == HuffmanCode::Kind::kDc ? 1 : step_of(symbol);
  LookupEntry entry;
  entry.bits = static_cast<std::uint8_t>(symbol.bits + size);
  entry.code = symbol.bits;
  entry.unused = static_cast<std::uint8_t>(64 - size);
  // A DC difference of 0 is written as a second value, since a value of no bits cannot be taken from the data.
  entry.first_step = static_cast<std::uint8_t>(size > 0 ? step : kNowhere);
  entry.step = static_cast<std::int16_t>(step);
  if (size > 0 && entry.bits < kLookBits) {
    const int after = bits << entry.bits & ((1 << kLookBits) - 1);
    add_second(entry, ac.by_bits[static_cast<std::size_t>(after)], after);
  }
  return entry;
}

bool is_of(HuffmanCode::Kind kind, int symbol) {
  if (kind == HuffmanCode::Kind::kDc) {
    return symbol <= kMaxDcSize;
  }
  const int size = symbol & 15;
  return size > 0 ? size <= kMaxAcSize : symbol == kEndOfBlockSymbol || symbol == kSixteenZeros;
}

}  // namespace

bool HuffmanCode::read(HuffmanCodes codes, Kind kind) {
  if (codes.size() < kMaxCode || codes.size() > kMaxCode + symbols.size()) {
    return false;
  }
  by_bits.fill({});
  const HuffmanCodes values = codes.subspan(kMaxCode);
  std::transform(values.begin(), values.end(), symbols.begin(),
                 [](std::byte value) { return std::to_integer<std::uint8_t>(value); });
  int code = 0, known = 0;  // code: of the current length
  for (int length = 1; length <= kMaxCode; ++length) {
    const auto l = static_cast<std::size_t>(length);
    const int count = value_of(codes, l - 1);
    offset[l] = known - code;
    for (int i = 0; i < count && length <= kLookBits; ++i) {
      const int shift = kLookBits - length;
      const std::uint8_t symbol = symbols[static_cast<std::size_t>(known + i)];
      if (code + i < 1 << length) {
        std::fill_n(by_bits.begin() + ((code + i) << shift), 1 << shift,
                    Symbol{static_cast<std::uint8_t>(length), symbol});
      }
    }
    code += count;
    known += count;
    if (code >= 1 << length) {  // too many codes, or one of only ones
      return false;
    }
    end[l] = code << (kMaxCode - length);
    code <<= 1;
  }
  for (int i = 0; i < known; ++i) {
    if (!is_of(kind, symbols[static_cast<std::size_t>(i)])) {
      return false;
    }
  }
  return true;
}

HuffmanCode::Symbol HuffmanCode::find(unsigned bits) const {
  for (std::size_t length = 1; length <= kMaxCode; ++length) {
    if (static_cast<std::int32_t>(bits) < end[length]) {
      const auto code = static_cast<int>(bits >> (kMaxCode - length));
      return {static_cast<std::uint8_t>(length), symbols[static_cast<std::size_t>(code + offset[length])]};
    }
  }
  return {};
}

BlockTables BlockTables::without_codes() {
  BlockTables tables;
  tables.first.fill(kIrregular);
  tables.rest.fill(kIrregular);
  return tables;
}

bool BlockTables::equals_seen(HuffmanCodes dc_codes, HuffmanCodes ac_codes) const {
  return seen_.size() == dc_codes.size() + ac_codes.size() &&
         std::equal(dc_codes.begin(), dc_codes.end(), seen_.begin()) &&
         std::equal(ac_codes.begin(), ac_codes.end(), seen_.end() - static_cast<std::ptrdiff_t>(ac_codes.size()));
}

bool BlockTables::build(HuffmanCodes dc_codes, HuffmanCodes ac_codes, bool only_if_seen) {
  const bool is_seen = equals_seen(dc_codes, ac_codes);
  if (is_seen && built_) {
    return true;
  }
  built_ = false;
  seen_.assign(dc_codes.begin(), dc_codes.end());
  seen_.insert(seen_.end(), ac_codes.begin(), ac_codes.end());
  if ((only_if_seen && !is_seen) || !dc.read(dc_codes, HuffmanCode::Kind::kDc) ||
      !ac.read(ac_codes, HuffmanCode::Kind::kAc)) {
    return false;
  }
  for (int i = 0; i < 1 << kLookBits; ++i) {
    first[static_cast<std::size_t>(i)] = entry_of(dc, HuffmanCode::Kind::kDc, ac, i);
    rest[static_cast<std::size_t>(i)] = entry_of(ac, HuffmanCode::Kind::kAc, ac, i);
  }
  built_ = true;
  return true;
}

bool ImageTables::build(const BaselineHeader& header, bool only_if_seen) {
  bool good = true;
  for (std::size_t i = 0; i < static_cast<std::size_t>(header.channels); ++i) {
    const JpegComponent& each = header.components[i];
    std::size_t same = 0;  // the first component with these tables
    while (header.components[same].dc.data() != each.dc.data() || header.components[same].ac.data() != each.ac.data()) {
      ++same;
    }
    if (same == i) {
      good = tables_[i].build(each.dc, each.ac, only_if_seen) && good;
    }
    of_[i] = same;
  }
  return good;
}

CoefficientOrder::CoefficientOrder(int blocks) {
  constexpr int kOutside = kBlockSize;
  places_.fill(static_cast<std::int16_t>(kOutside * blocks));
  for (std::size_t k = 0; k < kBlockSize; ++k) {
    const int row = kNaturalOrder[k] / kBlockSide, column = kNaturalOrder[k] % kBlockSide;
    places_[static_cast<std::size_t>(kBelow - kBlockSize) + k] =
        static_cast<std::int16_t>(row * blocks * kBlockSide + column);
  }
}

}  // namespace stoker::data
