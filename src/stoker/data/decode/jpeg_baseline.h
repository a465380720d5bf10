// SPDX-License-Identifier: Apache-2.0
// Decodes plain baseline JPEGs, which nearly all are, to the pixels of libjpeg-turbo in half of its time. Refuses
// everything else, so that libjpeg-turbo decodes it (docs/decisions/own-jpeg-path.md). Used only by JpegDecoder. One
// thread per decoder.
//
//   file ─► jpeg_header ─► jpeg_tables ─► jpeg_entropy ─► jpeg_blocks ─► jpeg_transform ─► jpeg_colour ─► pixels
//           (once per image)              (row of MCUs by row of MCUs: all stays in the L2 cache)
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "stoker/augment/image.h"
#include "stoker/data/decode/jpeg_blocks.h"
#include "stoker/data/decode/jpeg_colour.h"
#include "stoker/data/decode/jpeg_entropy.h"
#include "stoker/data/decode/jpeg_header.h"
#include "stoker/data/decode/jpeg_rows.h"
#include "stoker/data/decode/jpeg_tables.h"

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
  bool build_tables();
  void choose_mcus(const augment::Region& region);
  bool decode_rows(const augment::Region& region, int channels, JpegRows& rows);
  bool finish_row(int row, const RowTask& task, JpegRows& rows);
  void emit(const augment::Region& region, int channels, int begin, int end);

  DecodeRow decode_row_;
  const ColourKernels* colours_;
  CoefficientOrder order_;
  JpegBlocks blocks_;

  Bytes file_;
  BaselineHeader header_;
  ScanData scan_;
  std::array<BlockTables, 3> tables_;
  std::array<const BlockTables*, 3> tables_of_{};  // of the components: equal codes have one table
  int used_ = 0;                                   // components of which samples are needed
  bool interpolated_ = false;                      // a line of pixels needs two lines of chroma
  int mcus_down_ = 0;
  McuRange columns_, rows_;                    // the needed MCUs
  JpegRows unknown_;                           // reused where the caller keeps no rows
  std::vector<std::uint8_t> chroma_, pixels_;  // these only grow
};

}  // namespace stoker::data
