// SPDX-License-Identifier: Apache-2.0
// Decodes plain baseline JPEGs, which nearly all are, to the pixels of libjpeg-turbo in half of its time. Refuses
// everything else, so that libjpeg-turbo decodes it (docs/decisions/own-jpeg-path.md). Used only by JpegDecoder. One
// thread per decoder.
//
//   file ─► jpeg_header ─► jpeg_tables ─► jpeg_entropy ─► jpeg_transform ─► jpeg_colour ─► pixels
//           (once per image)              (row of MCUs by row of MCUs: all stays in the L2 cache)
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "stoker/augment/image.h"
#include "stoker/data/decode/jpeg_colour.h"
#include "stoker/data/decode/jpeg_entropy.h"
#include "stoker/data/decode/jpeg_header.h"
#include "stoker/data/decode/jpeg_rows.h"
#include "stoker/data/decode/jpeg_tables.h"
#include "stoker/data/decode/jpeg_transform.h"

namespace stoker::data {

class BaselineJpeg {
 public:
  BaselineJpeg();

  // Reads the header; the bytes must stay until the last call of decode(). Empty if the image is not for this decoder
  // or this processor.
  std::optional<StoredImage> open(Bytes file);
  // As JpegDecoder::decode() at full size. Empty for any irregularity in the data that was needed; libjpeg-turbo then
  // decides whether it is an error. rows are emptied if they do not lead to an image.
  std::optional<augment::ImageView> decode(const augment::Region& region, int channels, JpegRows* rows);

 private:
  // Samples of one component: a ring of two rows of MCUs. Its first column belongs to MCU columns_.begin.
  struct Plane {
    std::uint8_t* first = nullptr;  // sample (0, 0)
    std::ptrdiff_t stride = 0;
    int ring = 0;                          // rows, a power of 2
    std::int16_t* coefficients = nullptr;  // of one row of MCUs
    int blocks = 0, groups = 0;            // of the kept MCUs, side by side
    [[nodiscard]] std::uint8_t* row(int y) const { return first + (y & (ring - 1)) * stride; }
  };
  struct Range {
    int begin = 0, end = 0;
    [[nodiscard]] bool has(int i) const { return i >= begin && i < end; }
  };
  using RowPlan = std::vector<BlockPlan>;  // the last one is the end

  bool build_tables();
  void choose_mcus(const augment::Region& region);
  void lay_out();
  void plan(RowPlan& blocks, Range kept, int mcus);
  bool decode_rows(const augment::Region& region, int channels, JpegRows& rows);
  bool decode_row(const RowPlan& blocks, JpegRow& at);
  bool transform(int mcu_row);
  void emit(const augment::Region& region, int channels, Range lines);
  [[nodiscard]] const std::uint8_t* chroma(int component, int y, int left, int width);

  DecodeRow decode_row_;
  TransformKernel transform_;
  const ColourKernels* colours_;
  CoefficientOrder order_;

  BaselineHeader header_;
  ScanData scan_;
  Bytes file_;
  std::array<BlockTables, 3> tables_;
  std::array<const BlockTables*, 3> tables_of_{};  // of the components: equal codes have one table
  int used_ = 0;                                   // components of which samples are needed
  bool interpolated_ = false;                      // a line of pixels needs two lines of chroma
  int mcus_across_ = 0, mcus_down_ = 0;
  Range columns_, rows_;  // the needed MCUs
  std::array<Plane, 3> planes_;
  RowPlan skipped_row_, whole_row_, short_row_;
  std::vector<std::int16_t> coefficients_, skipped_;  // these only grow
  std::vector<std::uint8_t> samples_, wide_, pixels_;
};

}  // namespace stoker::data
