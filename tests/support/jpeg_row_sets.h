// SPDX-License-Identifier: Apache-2.0
// For tests of lists of JPEG rows: made-up rows, contents that they belong to, and a source without files. Thread-safe:
// no state.
#pragma once

#include <cstdint>
#include <filesystem>
#include <random>
#include <utility>

#include "stoker/data/folder/byte_source.h"
#include "stoker/data/load/row_index.h"

namespace stoker::testing {

// A photograph of 100 kB; other numbers are other photographs.
inline data::ContentKey made_up_key(std::uint64_t number, std::uint32_t bytes = 100'000) {
  return {number * 0x9E3779B97F4A7C15 + 1, bytes};
}

// The first `count` rows of that photograph.
inline data::JpegRows made_up_rows(std::uint64_t number, std::size_t count) {
  std::minstd_rand random(static_cast<std::uint32_t>(number) + 1);
  data::JpegRows rows(count);
  std::uint32_t bit = 0;
  for (data::JpegRow& row : rows) {
    row.bit = bit;
    bit += 5'000 + static_cast<std::uint32_t>(random() % 20'000);
    for (std::int16_t& dc : row.dc) {
      dc = static_cast<std::int16_t>(random() % 401) - 200;
    }
  }
  return rows;
}

// Has a size and a place, which is all that RowIndex looks at.
class EmptySource final : public data::ByteSource {
 public:
  EmptySource(std::filesystem::path place, std::int64_t size) : place_(std::move(place)), size_(size) {}
  [[nodiscard]] std::int64_t size() const override { return size_; }
  void read(std::int64_t, std::vector<std::byte>& bytes) const override { bytes.clear(); }
  [[nodiscard]] std::string_view key(std::int64_t) const override { return "x.jpg"; }
  [[nodiscard]] std::string name(std::int64_t) const override { return "x.jpg"; }
  [[nodiscard]] std::filesystem::path place() const override { return place_; }

 private:
  std::filesystem::path place_;
  std::int64_t size_;
};

}  // namespace stoker::testing
