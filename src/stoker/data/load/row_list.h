// SPDX-License-Identifier: Apache-2.0
// The rows of many JPEGs as one file (docs/formats.md), mapped where the file system allows: opening it then takes no
// time, and each entry is checked when it is used. An entry is found by the content of its image, so it cannot belong
// to another image or to an older state of a file. Used by RowIndex. Thread-safe.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "stoker/base/mapped_file.h"
#include "stoker/data/decode/jpeg_rows.h"

namespace stoker::data {

// Identifies the content of a file. Two different files with the same key are not to be expected (64 bits and a size).
struct ContentKey {
  std::uint64_t hash = 0;   // XXH3-64 of all bytes: 3 us for 110 kB, where decoding takes 400
  std::uint32_t bytes = 0;  // size of the file
  bool operator==(const ContentKey&) const = default;
};
[[nodiscard]] ContentKey content_key(Bytes file);

// Rows as bytes: differences from row to row, about 7 bytes each. Any values come back as they were.
void pack_rows(const JpegRows& rows, std::vector<std::byte>& packed);
// Replaces rows; leaves them empty and returns false if pack_rows() never makes such bytes.
bool unpack_rows(Bytes packed, JpegRows& rows);

struct PackedRows {
  ContentKey key;
  Bytes packed;         // borrowed
  bool in_use = false;  // by this process
};

// Bytes of an entry in a list besides its packed rows, and the limit of these.
inline constexpr std::size_t kRowListSlot = 24, kMostPackedRows = 65'535;

class RowList {
 public:
  // Null if there is no list, or one of another version or with another length than it says. most_read: bytes of a list
  // that cannot be mapped (see MappedFile); a longer one counts as none.
  [[nodiscard]] static std::shared_ptr<const RowList> open(const std::filesystem::path& path, std::size_t most_read);

  [[nodiscard]] std::size_t size() const { return count_; }
  [[nodiscard]] std::size_t bytes() const { return file_->bytes().size(); }
  // Packed rows, valid while the list exists, and marks the entry as used. Empty if there are none or if they are
  // damaged.
  [[nodiscard]] Bytes find(const ContentKey& key) const;
  // The entry with that number, in the order of the list; packed is empty if it is damaged.
  [[nodiscard]] PackedRows entry(std::size_t number) const;

 private:
  RowList(std::shared_ptr<const MappedFile> file, std::size_t count);

  std::shared_ptr<const MappedFile> file_;
  std::size_t count_;
  std::unique_ptr<std::atomic<bool>[]> used_;
};

// The order of a list.
[[nodiscard]] bool comes_before(const ContentKey& a, const ContentKey& b);
// Passes the bytes of a list to put, piece by piece. entries: in the order of a list, each key once, none empty or
// longer than kMostPackedRows.
void write_row_list(std::span<const PackedRows> entries, const std::function<void(Bytes)>& put);

}  // namespace stoker::data
