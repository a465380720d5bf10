// SPDX-License-Identifier: Apache-2.0
// The blocks of a row of MCUs on their way through BaselineJpeg: where entropy decoding puts their coefficients, and
// the samples that the transform makes of them. Not thread-safe.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "stoker/data/decode/jpeg_colour.h"
#include "stoker/data/decode/jpeg_entropy.h"
#include "stoker/data/decode/jpeg_header.h"
#include "stoker/data/decode/jpeg_transform.h"

namespace stoker::data {

struct McuRange {
  int begin = 0, end = 0;
  [[nodiscard]] bool has(int i) const { return i >= begin && i < end; }
};

class JpegBlocks {
 public:
  // What of a row is decoded. kSkipped: all, nothing is kept. kWhole: all, the columns are kept. kShort: to the last
  // column that is kept.
  enum class Extent : std::uint8_t { kSkipped, kWhole, kShort };

  explicit JpegBlocks(TransformKernel transform) : transform_(transform) {}

  // For an image: keeps the MCUs of these columns, and of their blocks the first `used` components.
  // header and tables must stay until the next call.
  void lay_out(const BaselineHeader& header, const ImageTables& tables, McuRange columns, int used);
  // The blocks of a row that begins at a bit of the data.
  RowTask task(Extent extent, std::uint64_t bit);
  // Replaces differences of DC by their sums, from those before the row to those behind it. False if they leave 16
  // bits.
  [[nodiscard]] bool sum_differences(const RowTask& row, std::array<std::int16_t, 3>& dc) const;
  // Makes samples of the kept blocks. False as in Transform.
  [[nodiscard]] bool transform(int mcu_row);
  // Whether a line of pixels needs two lines of chroma.
  [[nodiscard]] bool is_interpolated_down() const { return used_ > 1 && header_->components[0].down == 2; }
  // The samples of a line of the image, in the row of MCUs that was transformed last or in the one before. left: pixels
  // from the first kept column. Chroma beside the image equals its outermost sample. No chroma if one component is
  // used.
  [[nodiscard]] ColourLine line(int y, int left, int width) const;

 private:
  struct Plane {
    std::int16_t* coefficients = nullptr;
    int blocks = 0, groups = 0;       // in a row of blocks
    std::uint8_t* samples = nullptr;  // a ring of two rows of MCUs
    std::ptrdiff_t stride = 0;
    int lines = 0;                               // of the ring, a power of 2
    std::vector<std::int16_t> coefficient_room;  // these only grow
    std::vector<std::uint8_t> sample_room;
    [[nodiscard]] std::uint8_t* line(int y) const { return samples + (y & (lines - 1)) * stride; }
  };
  void plan(std::vector<BlockPlan>& row, Extent extent);
  void extend(int component, int y);

  TransformKernel transform_;
  const BaselineHeader* header_ = nullptr;
  const ImageTables* tables_ = nullptr;
  McuRange columns_;
  int used_ = 0;
  std::array<Plane, 3> planes_;
  std::array<std::vector<BlockPlan>, 3> plans_;  // by extent, made when needed; the last block of each is the end
  std::vector<std::int16_t> skipped_;            // only grows
};

}  // namespace stoker::data
