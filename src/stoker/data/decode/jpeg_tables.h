// SPDX-License-Identifier: Apache-2.0
// Lookup tables for the Huffman codes of one component: ten bits of the data give one or two symbols. Built by
// BaselineJpeg when the codes change, read by jpeg_entropy. Thread-safe: values. Codes: ITU-T T.81, annexes C and F.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "stoker/data/decode/jpeg_header.h"

namespace stoker::data {

inline constexpr int kLookBits = 10;  // 9 and 11 were slower: more lookups, or more misses of the L1 cache

// Places of coefficients while a block is decoded: place of the zigzag - 64, so that places below 0 lie in the block.
// The last decoded coefficient is at kBeforeBlock before the first lookup and at kLast in a complete block.
inline constexpr int kBeforeBlock = -65, kLast = -1;
// Added at the end of a block. Together they keep bit 9 of the place set if the block was not complete before, as bit
// 9 of every place in the block is, and clear if it was.
inline constexpr int kEndOfBlock = 1 + 1024;
inline constexpr int kInBlock = 512;
// Steps that lead out of a block from every place in it.
inline constexpr int kNowhere = 100;

// What the next ten bits say. The first symbol may have more bits than these, its value is taken from the data; the
// second symbol fits, its value is in the entry. Steps are added to the place: run + 1 of a coefficient. All fields are
// loaded on their own: processors have more ports for loads than for shifts.
struct LookupEntry {
  std::uint8_t bits = 0;        // of both symbols with their values; 0: the code is longer than ten bits or not a code
  std::uint8_t code = 0;        // bits of the first symbol's code
  std::uint8_t unused = 64;     // 64 - bits of the first symbol's value, which follow
  std::uint8_t first_step = 0;  // to the first symbol's coefficient; kNowhere if it has none
  std::int16_t second = 0;      // value of the second symbol; 0 without one
  std::int16_t step = 0;        // of both symbols

  [[nodiscard]] constexpr int size() const { return 64 - unused; }
};
static_assert(sizeof(LookupEntry) == 8);

// The value that `size` bits stand for, at least one: with a leading 0 it is negative (T.81, F.2.2.1).
[[nodiscard]] constexpr int extended(int bits, int size) {
  return bits >> (size - 1) != 0 ? bits : bits - (1 << size) + 1;
}

// Symbols by their code.
struct HuffmanCode {
  struct Symbol {
    std::uint8_t bits = 0;  // of the code; 0: not a code
    std::uint8_t value = 0;
  };
  enum class Kind : std::uint8_t { kDc, kAc };
  // False if the codes are none, one of them has only ones (which no code may have), or a symbol is not of its kind.
  bool read(HuffmanCodes codes, Kind kind);
  // The symbol whose code begins the 16 bits.
  [[nodiscard]] Symbol find(unsigned bits) const;

  std::array<Symbol, 1 << kLookBits> by_bits;  // if the code is that short
  std::array<std::int32_t, 17> end;            // by length: the code behind the last one, in 16 bits
  std::array<std::int32_t, 17> offset;         // by length: of the symbol, from the code
  std::array<std::uint8_t, 256> symbols;
};

class BlockTables {
 public:
  using Entries = std::array<LookupEntry, 1 << kLookBits>;

  // Does nothing if the codes are those of the last call: many encoders write the same ones in all files. only_if_seen:
  // builds tables only for codes that an earlier call had, since they cost more than libjpeg-turbo takes for a small
  // image. False if they are not built, or if the codes are not for BaselineJpeg.
  bool build(HuffmanCodes dc_codes, HuffmanCodes ac_codes, bool only_if_seen);
  // No bits are a code.
  static BlockTables without_codes();

  alignas(64) Entries first, rest;  // for the first lookup in a block (DC), and for the others
  HuffmanCode dc, ac;

 private:
  [[nodiscard]] bool equals_seen(HuffmanCodes dc_codes, HuffmanCodes ac_codes) const;

  std::vector<std::byte> seen_;  // the codes of the last call
  bool built_ = false;           // for these
};

// The tables of all components of an image. Components that name the same tables share theirs.
class ImageTables {
 public:
  // As BlockTables::build(), for each component. After true, the tables are for this image.
  [[nodiscard]] bool build(const BaselineHeader& header, bool only_if_seen);
  [[nodiscard]] const BlockTables& of(int component) const { return tables_[of_[static_cast<std::size_t>(component)]]; }

 private:
  std::array<BlockTables, 3> tables_;
  std::array<std::size_t, 3> of_{};  // by component
};

// Where coefficient k of a block is, from its coefficient (0, 0). Blocks of a group lie beside each other: coefficient
// (row, column) of block b is at (row * blocks + b) * 8 + column. Index: k - 64. Places outside a block lead to
// coefficient (0, 0) of the same block of the next group.
class CoefficientOrder {
 public:
  explicit CoefficientOrder(int blocks);  // in a group: 1, 2, 4
  [[nodiscard]] const std::int16_t* from_place_0() const { return places_.data() + kBelow; }

 private:
  static constexpr int kBelow = 66, kAbove = 1200;
  std::array<std::int16_t, kBelow + kAbove> places_;
};

}  // namespace stoker::data
