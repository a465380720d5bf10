// SPDX-License-Identifier: Apache-2.0
// Remembers where the rows of the JPEGs of one source begin, so that a later epoch, or a later run, decodes a crop
// without the rows above it. Used by SampleReader and `stoker inspect`. Thread-safe.
//
// Rows that do not belong to an image give wrong pixels, so they are found by its content: the hash of all its bytes,
// which is taken after each read. Compared with stamps of files, this notices a change under a running epoch and a
// change with a restored time; it needs no system call, and it does not care where a file lies, in which tar, or which
// samples are around it.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <stop_token>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <vector>

#include "stoker/data/decode/image_decode.h"
#include "stoker/data/folder/byte_source.h"
#include "stoker/data/load/row_list.h"

namespace stoker::data {

struct RowIndexOptions {
  std::filesystem::path cache = {};   // folder of the list; empty: what is learned ends with the object
  std::int64_t from_samples = 1'000;  // a smaller source has no list: it is learned again within a second
  // Bytes in memory besides the list, which is mapped. Half of it is 100,000 photographs, enough for the time between
  // two writes. Beyond it nothing is learned until the list is written; if it never can be, the limit stays.
  std::int64_t most_bytes = std::int64_t{128} << 20;
  std::chrono::milliseconds write_every = std::chrono::seconds(10);
};

class RowIndex {
 public:
  // Opens the list for the location of this source; ignores one of another version.
  RowIndex(const ByteSource& source, RowIndexOptions options);
  RowIndex(const RowIndex&) = delete;
  RowIndex& operator=(const RowIndex&) = delete;
  ~RowIndex();  // writes new entries

  // Replaces rows by those of the image with that content; empties them if none are known.
  void find(const ContentKey& key, JpegRows& rows) const;
  // Remembers rows of the image with that content unless more are known already, they would take more than 1 % of the
  // bytes of the image, or there is only the first. Never throws: without memory nothing is learned.
  void learn(const ContentKey& key, const JpegRows& rows);

  // Bytes in memory besides the list.
  [[nodiscard]] std::int64_t held_bytes() const { return held_.load(std::memory_order_relaxed); }
  // Number of entries in the list; 0 without one.
  [[nodiscard]] std::int64_t listed() const;

 private:
  struct Hash {
    std::size_t operator()(const ContentKey& key) const { return key.hash; }
  };
  struct alignas(64) Shard {
    mutable std::mutex mutex;  // guards the members below
    std::unordered_map<ContentKey, std::vector<std::byte>, Hash> learned;
    std::shared_ptr<const RowList> list;  // the same in all shards
  };
  struct Draft {                    // of a list
    std::vector<std::byte> copies;  // of learned rows
    std::vector<PackedRows> entries;
  };

  [[nodiscard]] Shard& shard_of(const ContentKey& key) const { return shards_[key.hash % shards_.size()]; }
  bool put(const ContentKey& key, std::vector<std::byte> packed);
  [[nodiscard]] std::shared_ptr<const RowList> list() const;
  void begin_writing();
  void keep_writing(const std::stop_token& stop);
  [[nodiscard]] bool is_worth_writing() const;
  bool write();
  [[nodiscard]] Draft learned() const;
  void fit(std::vector<PackedRows>& entries) const;
  bool adopt(std::span<const PackedRows> entries);

  RowIndexOptions options_;
  std::size_t samples_;
  std::filesystem::path file_;      // the list; empty: none
  std::optional<FileStamp> stamp_;  // of the list that the shards have
  mutable std::array<Shard, 64> shards_;
  std::atomic<std::int64_t> held_ = 0;
  std::atomic<bool> changed_ = false;  // something was learned since the list was written
  std::once_flag begun_;               // of writer_
  std::mutex sleep_;
  std::condition_variable_any wake_;
  std::jthread writer_;  // last member: it uses all members above
};

// ImageDecoder::decode() of a whole or partial image at full size, with the rows that are known; remembers what it
// finds. file: the bytes of the open image. memory: reused from image to image.
augment::ImageView decode_with_rows(RowIndex& index, ImageDecoder& decoder, Bytes file, const augment::Region& region,
                                    std::string_view name, JpegRows& memory);

}  // namespace stoker::data
