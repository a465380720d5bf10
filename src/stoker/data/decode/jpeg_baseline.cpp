// SPDX-License-Identifier: Apache-2.0
#include "stoker/data/decode/jpeg_baseline.h"

#include <algorithm>

namespace stoker::data {
namespace {

// Bits. libjpeg-turbo reads at most 8 bytes ahead, and warns if the file ends there; this leaves room for another
// version.
constexpr std::uint64_t kAhead = 64 * 8;
constexpr std::size_t kMaxScan = std::size_t{1} << 28;  // bytes, so that 32 bits hold a place
// Bytes. New tables take 11 us: as much as is gained at 64 x 64 pixels (2 kB), less than is gained at 96 x 96 (4 kB).
constexpr std::size_t kSmallScan = 3000;

}  // namespace

BaselineJpeg::BaselineJpeg()
    : decode_row_(row_decoder()),
      colours_(colour_kernels()),
      order_(std::max(transform_kernel().blocks, 1)),
      blocks_(transform_kernel()) {}

std::optional<StoredImage> BaselineJpeg::open(Bytes file) {
  if (decode_row_ == nullptr || !read_baseline_header(file, header_)) {
    return std::nullopt;
  }
  file_ = file;
  return header_.image;
}

std::optional<augment::ImageView> BaselineJpeg::decode(const augment::Region& region, int channels, JpegRows* rows) {
  scan_.read(file_, header_.scan);
  if (scan_.size >= kMaxScan || !build_tables()) {
    return std::nullopt;
  }
  used_ = channels == 1 ? 1 : header_.image.channels;
  choose_mcus(region);
  blocks_.lay_out(header_, tables_of_, columns_, used_);
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
  return decoded.as_part_of(header_.image.width, header_.image.height, region.left, region.top);
}

bool BaselineJpeg::build_tables() {
  bool good = true;
  for (std::size_t i = 0; i < static_cast<std::size_t>(header_.image.channels); ++i) {
    const JpegComponent& each = header_.components[i];
    std::size_t same = 0;  // the first component with these codes
    while (header_.components[same].dc != each.dc || header_.components[same].ac != each.ac) {
      ++same;
    }
    if (same == i) {
      const HuffmanCodes dc = header_.dc[static_cast<std::size_t>(each.dc)];
      const HuffmanCodes ac = header_.ac[static_cast<std::size_t>(each.ac)];
      good = tables_[i].build(dc, ac, scan_.size < kSmallScan) && good;
    }
    tables_of_[i] = &tables_[same];
  }
  return good;
}

// Interpolation needs one sample of chroma more on every side. Below the region this is exactly the part that
// libjpeg-turbo decodes, so damage behind it is not seen by either.
void BaselineJpeg::choose_mcus(const augment::Region& region) {
  const int width = header_.mcu_width(), height = header_.mcu_height();
  mcus_down_ = divided_up(header_.image.height, height);
  interpolated_ = used_ > 1 && header_.components[0].down == 2;
  const int beside = used_ > 1 && header_.components[0].across == 2 ? 2 : 0, above = interpolated_ ? 2 : 0;
  columns_ = {std::max(region.left - beside, 0) / width,
              std::min(divided_up(region.left + region.width + beside, width), divided_up(header_.image.width, width))};
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
      const int below = interpolated_ ? 1 : 0;  // the last line waits for chroma below it
      const int ready = row + 1 == mcus_down_ ? header_.image.height : (row + 1) * header_.mcu_height() - below;
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
  const int last = divided_up(header_.image.height, 2) - 1;  // line of chroma
  ColourLine line;
  line.left = region.left - columns_.begin * header_.mcu_width();
  line.width = region.width;
  line.half_across = header_.components[0].across == 2;
  line.half_down = interpolated_;
  for (int y = begin; y < end; ++y) {
    std::uint8_t* const out = pixels_.data() + static_cast<std::size_t>(y - region.top) * bytes;
    line.luma = blocks_.line(0, y);
    if (channels == 1) {
      std::copy_n(line.luma + line.left, bytes, out);
    } else if (used_ == 1) {
      colours_->repeat(line.luma + line.left, region.width, out);
    } else {
      line.below = y % 2 != 0;
      const int near = interpolated_ ? y / 2 : y;
      const int far = std::clamp(line.below ? near + 1 : near - 1, 0, last);
      line.chroma = {{{blocks_.line(1, near), blocks_.line(1, far)}, {blocks_.line(2, near), blocks_.line(2, far)}}};
      colours_->to_rgb(line, chroma_.data(), out);
    }
  }
}

}  // namespace stoker::data
