// SPDX-License-Identifier: Apache-2.0
// Decodes plain baseline JPEGs, which nearly all are, to the pixels of libjpeg-turbo in half of its time. Refuses
// everything else, so that libjpeg-turbo decodes it (docs/decisions/own-jpeg-path.md). Used only by JpegDecoder. One
// thread per decoder.
//
//   header ─► jpeg_tables ─► jpeg_entropy ─► jpeg_blocks ─► jpeg_transform ─► jpeg_colour ─► pixels
//   (once per image)         (row of MCUs by row of MCUs: all stays in the L2 cache)
#pragma once

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

struct jpeg_decompress_struct;  // of jpeglib.h

namespace stoker::data {

// The header that jpeg_read_header() has read from a file of this size, if BaselineJpeg can decode such an image on any
// processor: no warning, sequential Huffman coding with 8 bits (SOF0, SOF1), one scan, grey or YCbCr with chroma at
// full or half resolution. The result points into the tables of info.
[[nodiscard]] std::optional<BaselineHeader> baseline_header(const jpeg_decompress_struct& info, std::size_t file_size);

class BaselineJpeg {
 public:
  BaselineJpeg();

  // The bytes, and what the header points into, must stay until the last call of decode(). False if this processor is
  // none of those that this decoder is made for.
  bool open(const BaselineHeader& header, Bytes file);
  // As JpegDecoder::decode() at full size. Empty for any irregularity in the data that was needed; libjpeg-turbo then
  // decides whether it is an error. rows are emptied if they do not lead to an image.
  std::optional<augment::ImageView> decode(const augment::Region& region, int channels, JpegRows* rows);

 private:
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
  ImageTables tables_;
  int used_ = 0;  // components of which samples are needed
  int mcus_down_ = 0;
  McuRange columns_, rows_;                    // the needed MCUs
  JpegRows unknown_;                           // reused where the caller keeps no rows
  std::vector<std::uint8_t> chroma_, pixels_;  // these only grow
};

}  // namespace stoker::data
