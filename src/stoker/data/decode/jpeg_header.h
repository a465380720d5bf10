// SPDX-License-Identifier: Apache-2.0
// Reads the header of a JPEG that BaselineJpeg can decode: Huffman-coded baseline, 8 bits, one scan, grey or YCbCr
// with chroma at full or half resolution. Everything else is refused, and libjpeg-turbo decodes it. Thread-safe: no
// state. Markers: ITU-T T.81, annex B; which files are YCbCr: default_decompress_parms() of libjpeg-turbo.
#pragma once

#include <array>
#include <cstdint>

#include "stoker/base/file.h"
#include "stoker/data/decode/stored_image.h"

namespace stoker::data {

inline constexpr int kBlockSide = 8, kBlockSize = 64;  // coefficients and pixels of a block

[[nodiscard]] constexpr int divided_up(int a, int b) { return (a + b - 1) / b; }

// kNaturalOrder[k]: row * 8 + column of the coefficient at place k of the zigzag (T.81, figure A.6).
extern const std::array<std::uint8_t, kBlockSize> kNaturalOrder;

struct JpegComponent {
  int across = 1, down = 1;  // blocks of an MCU
  int quantiser = 0;         // number of its table
  int dc = 0, ac = 0;        // numbers of its Huffman tables
};

// The content of a DHT segment for one table: 16 counts of codes by length, then the symbols. Empty: no table.
using HuffmanCodes = Bytes;

struct BaselineHeader {
  StoredImage image;
  std::array<JpegComponent, 3> components;                          // image.channels of them
  std::array<std::array<std::uint16_t, kBlockSize>, 4> quantisers;  // in natural order
  std::array<HuffmanCodes, 4> dc, ac;
  std::size_t scan = 0;  // first byte of the entropy-coded data

  [[nodiscard]] int mcu_width() const { return kBlockSide * components[0].across; }
  [[nodiscard]] int mcu_height() const { return kBlockSide * components[0].down; }
};

// False: not for BaselineJpeg; header is then unspecified. The Huffman codes are not checked yet.
[[nodiscard]] bool read_baseline_header(Bytes file, BaselineHeader& header);

}  // namespace stoker::data
