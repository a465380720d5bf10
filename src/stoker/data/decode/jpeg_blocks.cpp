// SPDX-License-Identifier: Apache-2.0
#include "stoker/data/decode/jpeg_blocks.h"

#include <algorithm>

namespace stoker::data {
namespace {

constexpr int kEdge = 64;  // bytes before a line of samples

// Tables without codes, for the end of a row.
const BlockTables& no_codes() {
  static const BlockTables tables = BlockTables::without_codes();
  return tables;
}

// The buffer grows to size and some more; the result is the start of a cache line.
std::int16_t* aligned(std::vector<std::int16_t>& buffer, std::size_t size) {
  constexpr std::size_t kLine = 64;
  buffer.resize(std::max(buffer.size(), size + kLine));
  const auto address = reinterpret_cast<std::uintptr_t>(buffer.data());
  return buffer.data() + (kLine - address % kLine) % kLine / sizeof(std::int16_t);
}

}  // namespace

void JpegBlocks::lay_out(const BaselineHeader& header, const ImageTables& tables, McuRange columns, int used) {
  header_ = &header;
  tables_ = &tables;
  columns_ = columns;
  used_ = used;
  for (std::size_t i = 0; i < static_cast<std::size_t>(used); ++i) {
    const JpegComponent& component = header.components[i];
    Plane& plane = planes_[i];
    plane.blocks = (columns.end - columns.begin) * component.across;
    plane.groups = divided_up(plane.blocks, transform_.blocks);
    const int groups = (plane.groups + 1) * component.down;  // one for places behind a row of blocks
    const auto coefficients = static_cast<std::size_t>(groups * transform_.blocks * kBlockSize);
    plane.coefficients = aligned(plane.coefficient_room, coefficients);
    std::fill_n(plane.coefficients, coefficients, std::int16_t{0});
    plane.stride = kEdge + plane.groups * transform_.blocks * kBlockSide + kLineSlack;
    plane.lines = 2 * kBlockSide * component.down;
    const auto samples = static_cast<std::size_t>(plane.stride * plane.lines + kEdge + kLineSlack);
    plane.sample_room.resize(std::max(plane.sample_room.size(), samples));
    plane.samples = plane.sample_room.data() + kEdge;
  }
  for (std::vector<BlockPlan>& row : plans_) {
    row.clear();
  }
}

RowTask JpegBlocks::task(Extent extent, std::uint64_t bit) {
  std::vector<BlockPlan>& row = plans_[static_cast<std::size_t>(extent)];
  if (row.empty()) {
    plan(row, extent);
  }
  return {row.data(), &row.back(), bit};
}

// Blocks that are not kept overlap in skipped_, one coefficient apart: a block overwrites nothing of the blocks before
// it but coefficients that nobody reads, and all differences of DC remain.
void JpegBlocks::plan(std::vector<BlockPlan>& row, Extent extent) {
  constexpr std::size_t kMostBlocks = 6, kReach = 2 * 4 * kBlockSize;  // of an MCU; coefficients behind a block
  const int group = transform_.blocks * kBlockSize;
  const int all = divided_up(header_->width, header_->mcu_width());
  skipped_.resize(std::max(skipped_.size(), static_cast<std::size_t>(all) * kMostBlocks + kReach));
  std::int16_t* skipped = skipped_.data();
  for (int x = 0; x < (extent == Extent::kShort ? columns_.end : all); ++x) {
    const bool kept = extent != Extent::kSkipped && columns_.has(x);
    for (int i = 0; i < header_->channels; ++i) {
      const JpegComponent& component = header_->components[static_cast<std::size_t>(i)];
      const Plane& plane = planes_[static_cast<std::size_t>(i)];
      for (int part = 0; part < component.across * component.down; ++part) {
        std::int16_t* out = skipped;
        if (kept && i < used_) {
          const int block = (x - columns_.begin) * component.across + part % component.across;
          const int groups = part / component.across * (plane.groups + 1) + block / transform_.blocks;
          out = plane.coefficients + groups * group + block % transform_.blocks * kBlockSide;
        } else {
          ++skipped;
        }
        row.push_back({out, &tables_->of(i), i});
      }
    }
  }
  row.push_back({skipped, &no_codes(), 0});
}

bool JpegBlocks::sum_differences(const RowTask& row, std::array<std::int16_t, 3>& dc) const {
  std::array<int, 3> sums = {dc[0], dc[1], dc[2]};
  unsigned outside = 0;
  for (const BlockPlan* block = row.blocks; block != row.end; ++block) {
    int& sum = sums[static_cast<std::size_t>(block->component)];
    sum += *block->out;
    outside |= static_cast<unsigned>(sum + 0x8000) >> 16;
    *block->out = static_cast<std::int16_t>(sum);
  }
  for (std::size_t i = 0; i < dc.size(); ++i) {
    dc[i] = static_cast<std::int16_t>(sums[i]);
  }
  return outside == 0;
}

bool JpegBlocks::transform(int mcu_row) {
  const int group = transform_.blocks * kBlockSize;
  bool good = true;
  for (int i = 0; i < used_; ++i) {
    const JpegComponent& component = header_->components[static_cast<std::size_t>(i)];
    const Plane& plane = planes_[static_cast<std::size_t>(i)];
    for (int down = 0; down < component.down; ++down) {
      std::int16_t* const first = plane.coefficients + down * (plane.groups + 1) * group;
      for (int block = plane.blocks; block < plane.groups * transform_.blocks; ++block) {  // fills the last group
        first[block / transform_.blocks * group + block % transform_.blocks * kBlockSide] = 0;
      }
      const int y = (mcu_row * component.down + down) * kBlockSide;
      good = transform_.transform(first, plane.groups, component.quantiser, plane.line(y), plane.stride) && good;
      extend(i, y);
    }
  }
  return good;
}

// Repeats the outermost samples of chroma, for interpolation at the edge of the image.
void JpegBlocks::extend(int component, int y) {
  const Plane& plane = planes_[static_cast<std::size_t>(component)];
  const int all = divided_up(header_->width, header_->components[0].across);
  const int width = all - columns_.begin * kBlockSide;
  for (int i = 0; component > 0 && i < kBlockSide; ++i) {
    std::uint8_t* const samples = plane.line(y + i);
    if (columns_.begin == 0) {
      samples[-1] = samples[0];
    }
    if (columns_.end * kBlockSide >= all) {
      samples[width] = samples[width - 1];
    }
  }
}

ColourLine JpegBlocks::line(int y, int left, int width) const {
  ColourLine line;
  line.luma = planes_[0].line(y);
  line.left = left;
  line.width = width;
  line.half_across = header_->components[0].across == 2;
  line.half_down = is_interpolated_down();
  line.below = y % 2 != 0;
  const int last = divided_up(header_->height, 2) - 1;
  const int near = line.half_down ? y / 2 : y, far = std::clamp(line.below ? near + 1 : near - 1, 0, last);
  for (std::size_t i = 1; i < static_cast<std::size_t>(used_); ++i) {
    line.chroma[i - 1] = {planes_[i].line(near), planes_[i].line(far)};
  }
  return line;
}

}  // namespace stoker::data
