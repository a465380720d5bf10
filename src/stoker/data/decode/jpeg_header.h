// SPDX-License-Identifier: Apache-2.0
// What the header of a JPEG tells the files jpeg_*. Made by baseline_header(). Plain values.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "stoker/base/file.h"

namespace stoker::data {

inline constexpr int kBlockSide = 8, kBlockSize = 64;  // coefficients and pixels of a block

[[nodiscard]] constexpr int divided_up(int a, int b) { return (a + b - 1) / b; }

// The content of a DHT segment for one table (ITU-T T.81, B.2.4.2): 16 counts of codes by length, then the symbols.
// Empty: no table.
using HuffmanCodes = Bytes;

struct JpegComponent {
  int across = 1, down = 1;                  // blocks of an MCU
  const std::uint16_t* quantiser = nullptr;  // [kBlockSize], row by row
  HuffmanCodes dc, ac;
};

// Points into the tables that libjpeg-turbo read.
struct BaselineHeader {
  int width = 0, height = 0;                // pixels
  int channels = 0;                         // 1: grey, 3: YCbCr
  std::array<JpegComponent, 3> components;  // channels of them
  std::size_t scan = 0;                     // first byte of the entropy-coded data in the file

  [[nodiscard]] int mcu_width() const { return kBlockSide * components[0].across; }
  [[nodiscard]] int mcu_height() const { return kBlockSide * components[0].down; }
};

}  // namespace stoker::data
