// SPDX-License-Identifier: Apache-2.0
#include "stoker/data/decode/jpeg_tables.h"

#include <algorithm>

namespace stoker::data {
namespace {

constexpr int kMaxCode = 16;                     // bits
constexpr int kMaxDcSize = 11, kMaxAcSize = 10;  // bits of a value in 8-bit images (T.81, F.1.2)
constexpr int kEndOfBlockSymbol = 0x00, kSixteenZeros = 0xF0;

int value_of(HuffmanCodes codes, std::size_t i) { return std::to_integer<int>(codes[i]); }

// T.81, F.2.2.1: values with a leading 0 are negative.
int extended(int bits, int size) { return bits >> (size - 1) != 0 ? bits : bits - (1 << size) + 1; }

// The second symbol of an entry if it fits: its code and value are the `have` bits, which are followed by others.
void add_second(LookupEntry& entry, HuffmanCode::Symbol symbol, int rest, int have) {
  const int size = symbol.value & 15, bits = symbol.bits + size;
  if (symbol.bits == 0 || bits > have) {
    return;
  }
  entry.bits = static_cast<std::uint8_t>(entry.bits + bits);
  const int step = symbol.value == kEndOfBlockSymbol ? kEndOfBlock : (symbol.value >> 4) + 1;
  entry.step = static_cast<std::int16_t>(entry.step + step);
  if (size > 0) {
    entry.second = static_cast<std::int16_t>(extended(rest >> (kLookBits - bits) & ((1 << size) - 1), size));
  }
}

constexpr LookupEntry kIrregular = {.first_step = kNowhere, .step = kNowhere};

// Of a first symbol alone.
LookupEntry entry_of(HuffmanCode::Symbol symbol, int size, int step) {
  LookupEntry entry;
  entry.bits = static_cast<std::uint8_t>(symbol.bits + size);
  entry.code = symbol.bits;
  entry.unused = static_cast<std::uint8_t>(64 - size);
  entry.first_step = static_cast<std::uint8_t>(size > 0 ? step : kNowhere);
  entry.step = static_cast<std::int16_t>(step);
  return entry;
}

// A difference of 0 is written as a second value, since a value of no bits cannot be taken from the data.
LookupEntry dc_entry(HuffmanCode::Symbol symbol) { return entry_of(symbol, symbol.value, 1); }

LookupEntry ac_entry(HuffmanCode::Symbol symbol) {
  const int step = symbol.value == kEndOfBlockSymbol ? kEndOfBlock : (symbol.value >> 4) + 1;
  return entry_of(symbol, symbol.value & 15, step);
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
  if (codes.size() < kMaxCode) {
    return false;
  }
  by_bits.fill({});
  symbols = codes.subspan(kMaxCode);
  int code = 0, known = 0;  // code: of the current length
  for (int length = 1; length <= kMaxCode; ++length) {
    const auto l = static_cast<std::size_t>(length);
    const int count = value_of(codes, l - 1);
    offset[l] = known - code;
    for (int i = 0; i < count && length <= kLookBits; ++i) {
      const int shift = kLookBits - length;
      const auto symbol = static_cast<std::uint8_t>(value_of(symbols, static_cast<std::size_t>(known + i)));
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
    if (!is_of(kind, value_of(symbols, static_cast<std::size_t>(i)))) {
      return false;
    }
  }
  return true;
}

HuffmanCode::Symbol HuffmanCode::find(unsigned bits) const {
  for (std::size_t length = 1; length <= kMaxCode; ++length) {
    if (static_cast<std::int32_t>(bits) < end[length]) {
      const auto code = static_cast<int>(bits >> (kMaxCode - length));
      return {static_cast<std::uint8_t>(length),
              static_cast<std::uint8_t>(value_of(symbols, static_cast<std::size_t>(code + offset[length])))};
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

bool BlockTables::build(HuffmanCodes dc_codes, HuffmanCodes ac_codes) {
  if (!dc.read(dc_codes, HuffmanCode::Kind::kDc) || !ac.read(ac_codes, HuffmanCode::Kind::kAc)) {
    return false;
  }
  for (int i = 0; i < 1 << kLookBits; ++i) {
    for (const bool is_dc : {true, false}) {
      const HuffmanCode::Symbol symbol = (is_dc ? dc : ac).by_bits[static_cast<std::size_t>(i)];
      LookupEntry entry = symbol.bits == 0 ? kIrregular : is_dc ? dc_entry(symbol) : ac_entry(symbol);
      const int have = kLookBits - entry.bits;
      if (entry.bits > 0 && have > 0 && entry.size() > 0) {
        const int after = i << entry.bits & ((1 << kLookBits) - 1);
        add_second(entry, ac.by_bits[static_cast<std::size_t>(after)], after, have);
      }
      (is_dc ? first : rest)[static_cast<std::size_t>(i)] = entry;
    }
  }
  return true;
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
