// SPDX-License-Identifier: Apache-2.0
// Decodes the entropy-coded data of a baseline JPEG to coefficients, one row of MCUs after the other. Used only by
// BaselineJpeg. Thread-safe: no state.
#pragma once

#include <cstdint>
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

// A row of MCUs.
struct RowTask {
  const BlockPlan* blocks = nullptr;
  const BlockPlan* end = nullptr;
  std::uint64_t bit = 0;  // its first one; then the one behind the row
};

// Decodes a row to coefficients, where DC coefficients are differences still. False for a code that is none, or a block
// that runs over its last coefficient; the coefficients are then unspecified.
using DecodeRow = bool (*)(const std::uint8_t* data, RowTask& row, const CoefficientOrder& order);

// For this processor; null if it is none of those that BaselineJpeg is made for.
[[nodiscard]] DecodeRow row_decoder();

}  // namespace stoker::data
