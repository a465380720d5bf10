// SPDX-License-Identifier: Apache-2.0
#include "stoker/data/decode/jpeg_baseline.h"

#include <algorithm>
#include <cstddef>
#include <cstdio>  // jpeglib.h needs it
#include <iterator>
#include <numeric>
#include <span>
// After <cstdio>.
#include <jpeglib.h>

namespace stoker::data {
namespace {

// Bits. libjpeg-turbo reads at most 8 bytes ahead, and warns if the file ends there; this leaves room for another
// version.
constexpr std::uint64_t kAhead = 64 * 8;
constexpr std::size_t kMaxScan = std::size_t{1} << 28;  // bytes, so that 32 bits hold a place
// Bytes. New tables take 11 us: as much as is gained at 64 x 64 pixels (2 kB), less than is gained at 96 x 96 (4 kB).
constexpr std::size_t kSmallScan = 3000;

// The codes in the form of a DHT segment, which is also how libjpeg-turbo keeps them.
HuffmanCodes codes_of(const JHUFF_TBL* table) {
  constexpr std::size_t kCounts = 16, kMaxSymbols = 256;
  static_assert(offsetof(JHUFF_TBL, huffval) == offsetof(JHUFF_TBL, bits) + 1 + kCounts);
  if (table == nullptr) {
    return {};
  }
  const auto symbols = std::accumulate(table->bits + 1, table->bits + 1 + kCounts, std::size_t{0});
  if (symbols > kMaxSymbols) {
    return {};
  }
  return std::as_bytes(std::span(table, 1)).subspan(offsetof(JHUFF_TBL, bits) + 1, kCounts + symbols);
}

// libjpeg-turbo has refused factors below 1.
bool sampling_is_known(const BaselineHeader& header) {
  const auto& [luma, blue, red] = header.components;
  const auto is_single = [](const JpegComponent& each) { return each.across == 1 && each.down == 1; };
  if (header.channels == 1) {  // with 2 down, libjpeg-turbo decodes two rows of blocks at once, and sees damage in both
    return luma.across <= 2 && luma.down == 1;
  }
  const bool is_narrow = luma.across == 2 && header.width <= 4;  // chroma of 1 or 2 columns: not interpolated
  return luma.across <= 2 && luma.down <= 2 && is_single(blue) && is_single(red) && !is_narrow;
}

}  // namespace

std::optional<BaselineHeader> baseline_header(const jpeg_decompress_struct& info, std::size_t file_size) {
  const bool is_grey = info.num_components == 1, is_colour = info.num_components == 3;
  const bool is_plain = info.progressive_mode == FALSE && info.arith_code == FALSE && info.data_precision == 8 &&
                        info.Ss == 0 && info.Se == DCTSIZE2 - 1 && info.Ah == 0 && info.Al == 0;
  if (!is_plain || !(is_grey || (is_colour && info.jpeg_color_space == JCS_YCbCr)) ||
      info.comps_in_scan != info.num_components || info.restart_interval != 0 || info.err->num_warnings != 0) {
    return std::nullopt;
  }
  BaselineHeader header;
  header.width = static_cast<int>(info.image_width);
  header.height = static_cast<int>(info.image_height);
  header.channels = info.num_components;
  header.scan = file_size - info.src->bytes_in_buffer;
  for (int i = 0; i < info.num_components; ++i) {
    const jpeg_component_info& each = info.comp_info[i];
    const auto is_table = [](int number) { return number >= 0 && number < NUM_QUANT_TBLS && number < NUM_HUFF_TBLS; };
    if (info.cur_comp_info[i] != &each || !is_table(each.quant_tbl_no) || !is_table(each.dc_tbl_no) ||
        !is_table(each.ac_tbl_no) || info.quant_tbl_ptrs[each.quant_tbl_no] == nullptr) {
      return std::nullopt;
    }
    const auto& steps = info.quant_tbl_ptrs[each.quant_tbl_no]->quantval;
    if (std::any_of(std::begin(steps), std::end(steps), [](UINT16 step) { return step > 255; })) {
      return std::nullopt;
    }
    header.components[static_cast<std::size_t>(i)] = {each.h_samp_factor, each.v_samp_factor, steps,
                                                      codes_of(info.dc_huff_tbl_ptrs[each.dc_tbl_no]),
                                                      codes_of(info.ac_huff_tbl_ptrs[each.ac_tbl_no])};
  }
  if (!sampling_is_known(header)) {
    return std::nullopt;
  }
  if (is_grey) {
    header.components[0].across = 1;  // a scan of one component has no MCUs of several blocks
  }
  return header;
}

BaselineJpeg::BaselineJpeg()
    : decode_row_(row_decoder()),
      colours_(colour_kernels()),
      order_(std::max(transform_kernel().blocks, 1)),
      blocks_(transform_kernel()) {}

bool BaselineJpeg::open(const BaselineHeader& header, Bytes file) {
  header_ = header;
  file_ = file;
  return decode_row_ != nullptr;
}

std::optional<augment::ImageView> BaselineJpeg::decode(const augment::Region& region, int channels, JpegRows* rows) {
  scan_.read(file_, header_.scan);
  if (scan_.size >= kMaxScan || !tables_.build(header_, scan_.size < kSmallScan)) {
    return std::nullopt;
  }
  used_ = channels == 1 ? 1 : header_.channels;
  choose_mcus(region);
  blocks_.lay_out(header_, tables_, columns_, used_);
  const auto pixels = static_cast<std::size_t>(region.width) * static_cast<std::size_t>(region.height);
  pixels_.resize(std::max(pixels_.size(), pixels * static_cast<std::size_t>(channels) + kLineSlack + augment::kSlack));
  chroma_.resize(std::max(chroma_.size(), 2 * static_cast<std::size_t>(region.width + kLineSlack)));
  unknown_.clear();
  JpegRows& known = rows == nullptr ? unknown_ : *rows;
  if (!decode_rows(region, channels, known)) {
    known.clear();
    return std::nullopt;
  }
  const augment::ImageView decoded{.pixels = pixels_.data(),
                                   .width = region.width,
                                   .height = region.height,
                                   .channels = channels,
                                   .stride = std::ptrdiff_t{region.width} * channels};
  return decoded.as_part_of(header_.width, header_.height, region.left, region.top);
}

// Interpolation needs one sample of chroma more on every side. Below the region this is exactly the part that
// libjpeg-turbo decodes, so damage behind it is not seen by either.
void BaselineJpeg::choose_mcus(const augment::Region& region) {
  const int width = header_.mcu_width(), height = header_.mcu_height();
  mcus_down_ = divided_up(header_.height, height);
  const int beside = used_ > 1 && header_.components[0].across == 2 ? 2 : 0;
  const int above = used_ > 1 && header_.components[0].down == 2 ? 2 : 0;
  columns_ = {std::max(region.left - beside, 0) / width,
              std::min(divided_up(region.left + region.width + beside, width), divided_up(header_.width, width))};
  rows_ = {std::max(region.top - above, 0) / height,
           std::min(divided_up(region.top + region.height + above, height), mcus_down_)};
}

bool BaselineJpeg::decode_rows(const augment::Region& region, int channels, JpegRows& rows) {
  using Extent = JpegBlocks::Extent;
  if (rows.empty()) {
    rows.push_back({});
  }
  int y = region.top;
  for (int row = std::min(rows_.begin, static_cast<int>(rows.size()) - 1); row < rows_.end; ++row) {
    const bool next_is_known = row + 1 < static_cast<int>(rows.size());
    const Extent extent = !rows_.has(row) ? Extent::kSkipped : next_is_known ? Extent::kShort : Extent::kWhole;
    const std::uint64_t begin = std::min<std::uint64_t>(rows[static_cast<std::size_t>(row)].bit, scan_.size * 8);
    RowTask task = blocks_.task(extent, begin);
    if (!decode_row_(scan_.bytes.data(), task, order_) || !finish_row(row, task, rows)) {
      return false;
    }
    if (rows_.has(row)) {
      if (!blocks_.transform(row)) {
        return false;
      }
      const int below = blocks_.is_interpolated_down() ? 1 : 0;  // the last line waits for chroma below it
      const int ready = row + 1 == mcus_down_ ? header_.height : (row + 1) * header_.mcu_height() - below;
      const int end = std::min(ready, region.top + region.height);
      emit(region, channels, y, end);
      y = std::max(y, end);
    }
  }
  return true;
}

// Checks what was decoded, and adds the beginning of the next row if it is unknown.
bool BaselineJpeg::finish_row(int row, const RowTask& task, JpegRows& rows) {
  const std::uint64_t bits = scan_.size * 8;
  JpegRow next = rows[static_cast<std::size_t>(row)];
  next.bit = static_cast<std::uint32_t>(task.bit);
  if (task.bit > bits || !blocks_.sum_differences(task, next.dc)) {
    return false;
  }
  if (row + 1 == mcus_down_) {
    return scan_.ending == ScanData::Ending::kImage && bits - task.bit < 8;
  }
  if (static_cast<int>(rows.size()) == row + 1) {
    rows.push_back(next);
  }
  return scan_.ending != ScanData::Ending::kFile || bits - task.bit >= kAhead;
}

void BaselineJpeg::emit(const augment::Region& region, int channels, int begin, int end) {
  const auto bytes = static_cast<std::size_t>(region.width) * static_cast<std::size_t>(channels);
  const int left = region.left - columns_.begin * header_.mcu_width();
  for (int y = begin; y < end; ++y) {
    std::uint8_t* const out = pixels_.data() + static_cast<std::size_t>(y - region.top) * bytes;
    const ColourLine line = blocks_.line(y, left, region.width);
    if (channels == 1) {
      std::copy_n(line.luma + left, bytes, out);
    } else if (used_ == 1) {
      colours_->repeat(line.luma + left, region.width, out);
    } else {
      colours_->to_rgb(line, chroma_.data(), out);
    }
  }
}

}  // namespace stoker::data
