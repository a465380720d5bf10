// SPDX-License-Identifier: Apache-2.0
// Writes baseline JPEGs symbol by symbol, with random Huffman tables, so that everything occurs which the format or
// libjpeg-turbo allows but no encoder writes: codes of every length, tables without a free code, symbols that mean an
// end, runs beyond the end of a block, values that overflow 16 bits. For tests of the decoder and for its fuzz target.
// Thread-safe: no state.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "support/jpeg_writer.h"

namespace stoker::testing {

// A kind of file that is written symbol by symbol.
struct SymbolJpeg {
  int width = 1, height = 1;
  std::vector<std::array<int, 2>> factors = {{1, 1}, {1, 1}, {1, 1}};  // across and down, of 1 or 3 components
  int restart = 0;                                                     // MCUs between restart markers; 0: none
  // Also what only broken encoders write: large values, runs beyond the end of a block, quantisers of 16 bits, Huffman
  // codes of ones only, bits that are left over.
  bool wild = false;
};

namespace jpeg_symbols {

struct Table {
  std::array<std::uint8_t, 16> counts{};  // codes of 1 ... 16 bits
  std::vector<std::uint8_t> symbols;      // in the order of their codes
  struct Code {
    std::uint32_t bits = 0;
    int length = 0;
  };
  std::vector<Code> codes;  // of symbols
};

// A random tree with these symbols. full: no code is left free.
inline Table random_table(std::vector<std::uint8_t> symbols, bool full, QuickRandom& random) {
  for (std::size_t i = symbols.size(); i > 1; --i) {
    std::swap(symbols[i - 1], symbols[static_cast<std::size_t>(random.below(static_cast<int>(i)))]);
  }
  std::vector<int> lengths = {0};  // of the leaves
  const int skew = random.below(3);
  const std::size_t leaves = std::max<std::size_t>(2, symbols.size() + (full ? 0 : 1));
  while (lengths.size() < leaves) {
    auto place = lengths.begin() + random.below(static_cast<int>(lengths.size()));
    if (skew == 0 || (skew == 1 && random.below(2) == 0)) {
      place = std::ranges::max_element(lengths, {}, [](int length) { return length < 16 ? length : -1; });
    }
    if (*place < 16) {
      const int longer = ++*place;
      lengths.push_back(longer);
    }
  }
  std::ranges::sort(lengths);
  Table table;
  table.symbols = std::move(symbols);
  std::uint32_t code = 0;
  for (std::size_t i = 0; i < table.symbols.size(); ++i) {
    code = i == 0 ? 0 : (code + 1) << (lengths[i] - lengths[i - 1]);
    ++table.counts[static_cast<std::size_t>(lengths[i] - 1)];
    table.codes.push_back({code, lengths[i]});
  }
  return table;
}

class Writer {
 public:
  void byte(int value) { bytes_.push_back(static_cast<std::byte>(value)); }
  void word(int value) { byte(value >> 8), byte(value & 255); }
  void marker(int code) { byte(0xFF), byte(code); }
  void bits(std::uint32_t value, int count) {
    for (int i = count - 1; i >= 0; --i) {
      held_ = held_ * 2 + ((value >> i) & 1);
      if (++count_ == 8) {
        byte(static_cast<int>(held_));
        if (held_ == 0xFF) {
          byte(0);
        }
        held_ = 0, count_ = 0;
      }
    }
  }
  void pad(int bit) {
    while (count_ != 0) {
      bits(static_cast<std::uint32_t>(bit), 1);
    }
  }
  std::vector<std::byte> done() { return std::move(bytes_); }

 private:
  std::vector<std::byte> bytes_;
  std::uint32_t held_ = 0;
  int count_ = 0;  // bits in held_
};

struct Component {
  int across = 1, down = 1, quantiser = 0;
  std::size_t dc = 0, ac = 0;
};

struct Tables {
  std::array<Table, 2> dc, ac;
};

// largest: bits of a value.
inline std::vector<std::uint8_t> dc_symbols(int largest, QuickRandom& random) {
  std::vector<std::uint8_t> symbols;
  for (int size = 0; size <= largest; ++size) {
    if (random.below(4) != 0 || size == 1) {
      symbols.push_back(static_cast<std::uint8_t>(size));
    }
  }
  return symbols;
}

inline std::vector<std::uint8_t> ac_symbols(int largest, bool wild, QuickRandom& random) {
  std::vector<std::uint8_t> symbols = {0};  // the end of a block
  const int share = 1 + random.below(8);
  for (int symbol = 1; symbol < 256; ++symbol) {
    const int size = symbol & 15;
    const bool usual = (size >= 1 && size <= largest) || symbol == 0xF0;
    if ((usual || wild) && random.below(8) < share) {
      symbols.push_back(static_cast<std::uint8_t>(symbol));
    }
  }
  return symbols;
}

inline void put(const Table& table, std::size_t which, QuickRandom& random, Writer& to) {
  to.bits(table.codes[which].bits, table.codes[which].length);
  const int size = table.symbols[which] & 15;
  to.bits(random(), size);
}

inline void put_block(const Table& dc, const Table& ac, bool wild, QuickRandom& random, Writer& to) {
  put(dc, static_cast<std::size_t>(random.below(static_cast<int>(dc.symbols.size()))), random, to);
  const int ends = 1 + random.below(40);  // how rarely a block ends early
  const auto end = static_cast<std::size_t>(std::ranges::find(ac.symbols, 0) - ac.symbols.begin());
  for (int k = 1; k < 64;) {
    auto which = static_cast<std::size_t>(random.below(static_cast<int>(ac.symbols.size())));
    const int run = ac.symbols[which] >> 4;
    if (random.below(ends) == 0 || (!wild && k + run > 63)) {
      which = end;
    }
    put(ac, which, random, to);
    const int symbol = ac.symbols[which];
    if ((symbol & 15) == 0 && symbol != 0xF0) {
      return;
    }
    k += 1 + (symbol >> 4);
  }
}

inline void put_quantisers(bool wild, QuickRandom& random, Writer& to) {
  for (int table = 0; table < 2; ++table) {
    const bool wide = wild && random.below(3) == 0;
    const int range = 1 << (1 + random.below(wide ? 16 : 8));
    to.marker(0xDB);
    to.word(2 + 1 + (wide ? 128 : 64));
    to.byte((wide ? 16 : 0) + table);
    for (int k = 0; k < 64; ++k) {
      const int value = std::min(random.below(range) + (wild ? 0 : 1), wide ? 65535 : 255);
      wide ? to.word(value) : to.byte(value);
    }
  }
}

inline void put_table(const Table& table, int kind, std::size_t number, Writer& to) {
  to.marker(0xC4);
  to.word(2 + 1 + 16 + static_cast<int>(table.symbols.size()));
  to.byte(kind * 16 + static_cast<int>(number));
  for (const std::uint8_t count : table.counts) {
    to.byte(count);
  }
  for (const std::uint8_t symbol : table.symbols) {
    to.byte(symbol);
  }
}

inline void put_header(const SymbolJpeg& kind, const std::vector<Component>& components, Writer& to) {
  if (kind.restart != 0) {
    to.marker(0xDD);
    to.word(4), to.word(kind.restart);
  }
  const auto count = static_cast<int>(components.size());
  to.marker(0xC0);
  to.word(8 + 3 * count);
  to.byte(8), to.word(kind.height), to.word(kind.width), to.byte(count);
  for (int c = 0; c < count; ++c) {
    const Component& facts = components[static_cast<std::size_t>(c)];
    to.byte(c + 1), to.byte(facts.across * 16 + facts.down), to.byte(facts.quantiser);
  }
  to.marker(0xDA);
  to.word(6 + 2 * count);
  to.byte(count);
  for (int c = 0; c < count; ++c) {
    const Component& facts = components[static_cast<std::size_t>(c)];
    to.byte(c + 1), to.byte(static_cast<int>(facts.dc * 16 + facts.ac));
  }
  to.byte(0), to.byte(63), to.byte(0);
}

inline void put_scan(const SymbolJpeg& kind, const std::vector<Component>& components, const Tables& tables,
                     QuickRandom& random, Writer& to) {
  int across = 1, down = 1;
  for (const Component& facts : components) {
    across = std::max(across, facts.across), down = std::max(down, facts.down);
  }
  const bool one = components.size() == 1;  // an MCU is then a block
  const int columns = one ? (kind.width + 7) / 8 : (kind.width + 8 * across - 1) / (8 * across);
  const int rows = one ? (kind.height + 7) / 8 : (kind.height + 8 * down - 1) / (8 * down);
  for (int mcu = 0; mcu < columns * rows; ++mcu) {
    if (kind.restart != 0 && mcu != 0 && mcu % kind.restart == 0) {
      to.pad(kind.wild ? random.below(2) : 1);
      to.marker(0xD0 + (mcu / kind.restart - 1) % 8);
    }
    for (const Component& facts : components) {
      for (int block = one ? 1 : facts.across * facts.down; block > 0; --block) {
        put_block(tables.dc[facts.dc], tables.ac[facts.ac], kind.wild, random, to);
      }
    }
  }
  to.pad(kind.wild ? random.below(2) : 1);
}

}  // namespace jpeg_symbols

// The bytes of a file. Equal arguments give equal bytes.
inline std::vector<std::byte> symbol_jpeg(const SymbolJpeg& kind, std::uint64_t seed) {
  namespace parts = jpeg_symbols;
  QuickRandom random(seed);
  parts::Writer to;
  to.marker(0xD8);
  if (random.below(2) == 0) {
    to.marker(0xE0), to.word(16);
    for (const char letter : std::string_view("JFIF\0\1\1\0\0\1\0\1\0\0", 14)) {
      to.byte(letter);
    }
  }
  parts::put_quantisers(kind.wild, random, to);
  parts::Tables tables;
  const int largest = kind.wild ? 15 : 1 + random.below(10);  // small values seldom overflow
  for (std::size_t i = 0; i < 2; ++i) {
    const bool full = kind.wild && random.below(60) == 0;  // libjpeg-turbo refuses it
    tables.dc[i] = parts::random_table(parts::dc_symbols(kind.wild ? 15 : largest + 1, random), full, random);
    tables.ac[i] = parts::random_table(parts::ac_symbols(largest, kind.wild, random), full, random);
    parts::put_table(tables.dc[i], 0, i, to);
    parts::put_table(tables.ac[i], 1, i, to);
  }
  std::vector<parts::Component> components;
  for (const auto& [across, down] : kind.factors) {
    components.push_back({across, down, random.below(2), static_cast<std::size_t>(random.below(2)),
                          static_cast<std::size_t>(random.below(2))});
  }
  parts::put_header(kind, components, to);
  parts::put_scan(kind, components, tables, random, to);
  for (int extra = kind.wild ? std::max(0, random.below(6) - 3) : 0; extra > 0; --extra) {
    to.byte(random.below(255));
  }
  to.marker(0xD9);
  return to.done();
}

}  // namespace stoker::testing
