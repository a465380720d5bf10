// SPDX-License-Identifier: Apache-2.0
#include "stoker/data/decode/jpeg_baseline.h"

#include <algorithm>

namespace stoker::data {
namespace {

constexpr int kEdge = 64;  // bytes before a row of samples
// libjpeg-turbo reads at most 8 bytes ahead, and warns if the file ends there.
constexpr std::uint64_t kAhead = 64 * 8;
constexpr std::size_t kMaxScan = std::size_t{1} << 28;  // bytes, so that 32 bits hold a place

// Tables without codes, for the end of a row.
const BlockTables& no_codes() {
  static const BlockTables tables = [] {
    BlockTables none;
    none.close();
    return none;
  }();
  return tables;
}

int divided_up(int a, int b) { return (a + b - 1) / b; }

template <typename T>
T* aligned(std::vector<T>& buffer, std::size_t size) {
  constexpr std::size_t kLine = 64;
  buffer.resize(std::max(buffer.size(), size + kLine));
  const auto address = reinterpret_cast<std::uintptr_t>(buffer.data());
  return buffer.data() + (kLine - address % kLine) % kLine / sizeof(T);
}

}  // namespace

BaselineJpeg::BaselineJpeg()
    : decode_row_(row_decoder()),
      transform_(transform_kernel()),
      colours_(colour_kernels()),
      order_(std::max(transform_.blocks, 1)) {}

std::optional<StoredImage> BaselineJpeg::open(Bytes file) {
  if (decode_row_ == nullptr || !read_baseline_header(file, header_)) {
    return std::nullopt;
  }
  // libjpeg-turbo does not interpolate chroma of one or two columns.
  if (header_.components[0].across == 2 && header_.image.width <= 4) {
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
  lay_out();
  JpegRows unknown;
  JpegRows& known = rows == nullptr ? unknown : *rows;
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
  for (int i = 0; i < header_.image.channels; ++i) {
    const JpegComponent& each = header_.components[static_cast<std::size_t>(i)];
    const auto* const same = std::find_if(header_.components.begin(), header_.components.begin() + i,
                                          [&](const JpegComponent& a) { return a.dc == each.dc && a.ac == each.ac; });
    const auto tables = static_cast<std::size_t>(same - header_.components.begin());
    if (tables == static_cast<std::size_t>(i) &&
        !tables_[tables].build(header_.dc[static_cast<std::size_t>(each.dc)],
                               header_.ac[static_cast<std::size_t>(each.ac)])) {
      return false;
    }
    tables_of_[static_cast<std::size_t>(i)] = &tables_[tables];
  }
  return true;
}

// Interpolation needs one sample of chroma more on every side. Below the region this is exactly the part that
// libjpeg-turbo decodes, so damage behind it is not seen by either.
void BaselineJpeg::choose_mcus(const augment::Region& region) {
  const int width = header_.mcu_width(), height = header_.mcu_height();
  mcus_across_ = divided_up(header_.image.width, width);
  mcus_down_ = divided_up(header_.image.height, height);
  interpolated_ = used_ > 1 && header_.components[0].down == 2;
  const int beside = used_ > 1 && header_.components[0].across == 2 ? 2 : 0, above = interpolated_ ? 2 : 0;
  columns_ = {std::max(region.left - beside, 0) / width,
              std::min(divided_up(region.left + region.width + beside, width), mcus_across_)};
  rows_ = {std::max(region.top - above, 0) / height,
           std::min(divided_up(region.top + region.height + above, height), mcus_down_)};
}

void BaselineJpeg::lay_out() {
  const int blocks = transform_.blocks, kept = columns_.end - columns_.begin;
  std::size_t coefficients = 0, samples = 0;
  std::array<std::size_t, 3> coefficients_at{}, samples_at{};
  for (std::size_t i = 0; i < static_cast<std::size_t>(used_); ++i) {
    const JpegComponent& component = header_.components[i];
    Plane& plane = planes_[i];
    plane.blocks = kept * component.across;
    plane.groups = divided_up(plane.blocks, blocks);
    plane.stride = kEdge + plane.groups * blocks * kBlockSide + kRowSlack;
    plane.ring = 2 * kBlockSide * component.down;
    coefficients_at[i] = coefficients;
    samples_at[i] = samples + kEdge;
    // One group more, where coefficients behind the end of a block go.
    coefficients += static_cast<std::size_t>((plane.groups + 1) * blocks * kBlockSize * component.down);
    samples += static_cast<std::size_t>(plane.stride * plane.ring);
  }
  std::int16_t* const first = aligned(coefficients_, coefficients);
  std::fill_n(first, coefficients, std::int16_t{0});
  samples_.resize(std::max(samples_.size(), samples + kRowSlack));
  for (std::size_t i = 0; i < static_cast<std::size_t>(used_); ++i) {
    planes_[i].coefficients = first + coefficients_at[i];
    planes_[i].first = samples_.data() + samples_at[i];
  }
  plan(skipped_row_, {0, 0}, mcus_across_);
  plan(whole_row_, columns_, mcus_across_);
  plan(short_row_, columns_, columns_.end);
}

// Blocks that are not kept overlap in skipped_, one coefficient apart: a block overwrites nothing of the blocks before
// it but coefficients that nobody reads, and all differences of DC remain.
void BaselineJpeg::plan(RowPlan& row, Range kept, int mcus) {
  const int blocks = transform_.blocks, group = blocks * kBlockSize;
  row.clear();
  std::ptrdiff_t skipped = 0;
  skipped_.resize(std::max(skipped_.size(), static_cast<std::size_t>(mcus_across_) * 6 + 2 * kBlockSize * 4));
  for (int x = 0; x < mcus; ++x) {
    for (int i = 0; i < header_.image.channels; ++i) {
      const JpegComponent& component = header_.components[static_cast<std::size_t>(i)];
      const Plane& plane = planes_[static_cast<std::size_t>(i)];
      for (int place = 0; place < component.across * component.down; ++place) {
        const int block = (x - columns_.begin) * component.across + place % component.across;
        std::int16_t* const out = kept.has(x) && i < used_
                                      ? plane.coefficients +
                                            (place / component.across * (plane.groups + 1) + block / blocks) * group +
                                            block % blocks * kBlockSide
                                      : skipped_.data() + skipped++;
        row.push_back({out, tables_of_[static_cast<std::size_t>(i)], i});
      }
    }
  }
  row.push_back({skipped_.data() + skipped, &no_codes(), 0});
}

bool BaselineJpeg::decode_rows(const augment::Region& region, int channels, JpegRows& rows) {
  const std::uint64_t bits = scan_.size * 8;
  const int bottom = region.top + region.height;
  pixels_.resize(std::max(pixels_.size(), static_cast<std::size_t>(region.width) * static_cast<std::size_t>(channels) *
                                                  static_cast<std::size_t>(region.height) +
                                              kRowSlack + augment::kSlack));
  if (rows.empty()) {
    rows.push_back({});
  }
  int y = region.top;
  const int start = std::min(rows_.begin, static_cast<int>(rows.size()) - 1);
  JpegRow at = rows[static_cast<std::size_t>(start)];
  for (int row = start; row < rows_.end; ++row) {
    const auto next = static_cast<std::size_t>(row) + 1;
    const bool needed = row >= rows_.begin, next_is_known = next < rows.size(), is_last = row + 1 == mcus_down_;
    if (!decode_row(!needed         ? skipped_row_
                    : next_is_known ? short_row_
                                    : whole_row_,
                    at) ||
        (needed && !transform(row)) || (is_last && (scan_.ending != ScanData::Ending::kImage || bits - at.bit >= 8)) ||
        (scan_.ending == ScanData::Ending::kFile && bits - at.bit < kAhead)) {
      return false;
    }
    if (needed) {
      const int ready = is_last ? bottom : (row + 1) * header_.mcu_height() - (interpolated_ ? 1 : 0);
      emit(region, channels, {y, std::min(ready, bottom)});
      y = std::max(y, std::min(ready, bottom));
    }
    if (next_is_known) {
      at = rows[next];
    } else if (!is_last) {
      rows.push_back(at);
    }
  }
  return true;
}

// Moves at to the next row.
bool BaselineJpeg::decode_row(const RowPlan& blocks, JpegRow& at) {
  if (at.bit > scan_.size * 8) {
    return false;
  }
  const std::uint64_t end = decode_row_(scan_.bytes.data(), at.bit, blocks.data(), &blocks.back(), order_);
  if (end == 0 || end > scan_.size * 8) {
    return false;
  }
  at.bit = static_cast<std::uint32_t>(end);
  std::array<int, 3> dc = {at.dc[0], at.dc[1], at.dc[2]};
  unsigned outside = 0;
  for (const BlockPlan* block = blocks.data(); block != &blocks.back(); ++block) {
    int& sum = dc[static_cast<std::size_t>(block->component)];
    sum += *block->out;
    outside |= static_cast<unsigned>(sum + 0x8000) >> 16;
    *block->out = static_cast<std::int16_t>(sum);
  }
  for (std::size_t i = 0; i < dc.size(); ++i) {
    at.dc[i] = static_cast<std::int16_t>(dc[i]);
  }
  return outside == 0;
}

bool BaselineJpeg::transform(int mcu_row) {
  const int blocks = transform_.blocks, group = blocks * kBlockSize;
  bool good = true;
  for (std::size_t i = 0; i < static_cast<std::size_t>(used_); ++i) {
    const JpegComponent& component = header_.components[i];
    const Plane& plane = planes_[i];
    for (int down = 0; down < component.down; ++down) {
      std::int16_t* const first = plane.coefficients + down * (plane.groups + 1) * group;
      for (int block = plane.blocks; block < plane.groups * blocks; ++block) {
        first[block / blocks * group + block % blocks * kBlockSide] = 0;  // fills the last group
      }
      const int y = (mcu_row * component.down + down) * kBlockSide;
      good =
          transform_.transform(first, plane.groups, header_.quantisers[static_cast<std::size_t>(component.quantiser)],
                               plane.row(y), plane.stride) &&
          good;
      // Interpolation takes the outermost samples twice.
      const int width = divided_up(header_.image.width, header_.components[0].across) - columns_.begin * kBlockSide;
      for (int line = y; i > 0 && line < y + kBlockSide; ++line) {
        std::uint8_t* const samples = plane.row(line);
        if (columns_.begin == 0) {
          samples[-1] = samples[0];
        }
        if (columns_.end == mcus_across_) {
          samples[width] = samples[width - 1];
        }
      }
    }
  }
  return good;
}

// A line of chroma at full resolution, from pixel left of the plane on.
const std::uint8_t* BaselineJpeg::chroma(int component, int y, int left, int width) {
  const Plane& plane = planes_[static_cast<std::size_t>(component)];
  const bool wide = header_.components[0].across == 2;
  const std::size_t room = static_cast<std::size_t>(width) + 2 + kRowSlack;
  wide_.resize(std::max(wide_.size(), 2 * room));
  std::uint8_t* const out = wide_.data() + static_cast<std::size_t>(component - 1) * room;
  if (!interpolated_) {
    if (!wide) {
      return plane.row(y) + left;
    }
    colours_->widen(plane.row(y) + left / 2, width / 2 + 1, out);
    return out + left % 2;
  }
  const int last = divided_up(header_.image.height, 2) - 1, bias = y % 2 == 0 ? 1 : 2;
  const std::uint8_t* const near = plane.row(y / 2);
  const std::uint8_t* const far = plane.row(std::clamp(y / 2 + (y % 2 == 0 ? -1 : 1), 0, last));
  if (!wide) {
    colours_->between(near + left, far + left, bias, width, out);
    return out;
  }
  colours_->widen_between(near + left / 2, far + left / 2, width / 2 + 1, out);
  return out + left % 2;
}

void BaselineJpeg::emit(const augment::Region& region, int channels, Range lines) {
  const int left = region.left - columns_.begin * header_.mcu_width();
  const auto bytes = static_cast<std::size_t>(region.width) * static_cast<std::size_t>(channels);
  for (int y = lines.begin; y < lines.end; ++y) {
    const std::uint8_t* const luma = planes_[0].row(y) + left;
    std::uint8_t* const out = pixels_.data() + static_cast<std::size_t>(y - region.top) * bytes;
    if (channels == 1) {
      std::copy_n(luma, bytes, out);
    } else if (used_ == 1) {
      colours_->repeat(luma, region.width, out);
    } else {
      colours_->to_rgb(luma, chroma(1, y, left, region.width), chroma(2, y, left, region.width), region.width, out);
    }
  }
}

}  // namespace stoker::data
