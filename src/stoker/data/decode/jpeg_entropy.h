// SPDX-License-Identifier: Apache-2.0
// Decodes the entropy-coded data of a baseline JPEG to coefficients, one row of MCUs after the other. Used only by
// BaselineJpeg. Thread-safe: no state.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "stoker/data/decode/jpeg_tables.h"

namespace stoker::data {

// The data of a scan without stuffed bytes, followed by bytes that are not a code. Reused for every image.
struct ScanData {
  enum class Ending : std::uint8_t { kImage, kMarker, kFile };  // EOI, another marker, or none

  // Copies the data up to the first marker.
  void read(Bytes file, std::size_t scan);

  std::vector<std::uint8_t> bytes;
  std::size_t size = 0;  // without those that follow
  Ending ending = Ending::kFile;

 private:
  static constexpr std::uint8_t kMarker = 0xFF, kEndOfImage = 0xD9;
};

// One block of a row of MCUs in the order of the data. The last one of a row is the end: its tables hold no codes.
struct BlockPlan {
  std::int16_t* out = nullptr;  // its coefficient (0, 0)
  const BlockTables* tables = nullptr;
  int component = 0;
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

// Decodes a row. begin: its first bit. DC coefficients are differences. Returns the bit behind the row; 0 for a code
// that is none, or a block that does not end with its last coefficient.
using DecodeRow = std::uint64_t (*)(const std::uint8_t* data, std::uint64_t begin, const BlockPlan* blocks,
                                    const BlockPlan* end, const CoefficientOrder& order);

// For this processor; null if it is none of those that BaselineJpeg is made for.
[[nodiscard]] DecodeRow row_decoder();

}  // namespace stoker::data
