// SPDX-License-Identifier: Apache-2.0
// Sources of sample bytes: files in a folder, or members of tar shards. The index of a sample is the bytewise rank of
// its path relative to the split's root ("class/name.png"), so files and tar have the same order.
// Made by open_image_folder, read by SampleReader. Thread-safe: immutable, reads are positional.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "stoker/data/folder/key_list.h"
#include "stoker/data/folder/stage_laps.h"
#include "stoker/data/folder/tar.h"

namespace stoker::data {

struct SampleFile {
  FileStamp stamp;
  std::int64_t offset = 0;  // of the first byte
  bool operator==(const SampleFile&) const = default;
};

class ByteSource {
 public:
  virtual ~ByteSource() = default;
  [[nodiscard]] virtual std::int64_t size() const = 0;
  // Replaces the content of bytes with the sample. DataError with its name if it cannot be read.
  virtual void read(std::int64_t index, std::vector<std::byte>& bytes) const = 0;
  // The same; enters stage kRead of laps once the file is open.
  virtual void read_timed(std::int64_t index, std::vector<std::byte>& bytes, StageLaps& laps) const {
    laps.enter(Stage::kRead);
    read(index, bytes);
  }
  // Path relative to the root of the split, as bytes.
  [[nodiscard]] virtual std::string_view key(std::int64_t index) const = 0;
  // Current stamp of the file that contains the sample; empty if unknown.
  [[nodiscard]] virtual std::optional<SampleFile> file_of(std::int64_t index) const {
    (void)index;
    return std::nullopt;
  }
  // The folder or the first tar file of the samples; empty if there is none.
  [[nodiscard]] virtual std::filesystem::path place() const { return {}; }
  // Printable name of the sample: "photos/cat/1.jpg", "train-00001.tar: cat/1.jpg".
  [[nodiscard]] virtual std::string name(std::int64_t index) const = 0;
};

// keys must be sorted as bytes; the file of a key is root / key.
class FolderSource final : public ByteSource {
 public:
  FolderSource(std::filesystem::path root, KeyList keys);
  [[nodiscard]] std::int64_t size() const override { return keys_.size(); }
  void read(std::int64_t index, std::vector<std::byte>& bytes) const override;
  void read_timed(std::int64_t index, std::vector<std::byte>& bytes, StageLaps& laps) const override;
  [[nodiscard]] std::string_view key(std::int64_t index) const override;
  [[nodiscard]] std::string name(std::int64_t index) const override;
  [[nodiscard]] std::optional<SampleFile> file_of(std::int64_t index) const override;
  [[nodiscard]] std::filesystem::path place() const override { return root_; }
  [[nodiscard]] const std::filesystem::path& root() const { return root_; }
  [[nodiscard]] const KeyList& keys() const { return keys_; }

 private:
  std::filesystem::path root_;
  KeyList keys_;
};

// Place of a member; the same layout as in an index.
struct TarPlace {
  std::int64_t shard = 0;   // number of the tar file in the source
  std::int64_t offset = 0;  // bytes
  std::int64_t size = 0;
};

// keys must be sorted as bytes, equal keys by shard. places: one TarPlace per key, kept alive by owner.
class TarSource final : public ByteSource {
 public:
  TarSource(std::vector<std::shared_ptr<const TarFile>> shards, KeyList keys, std::shared_ptr<const void> owner,
            Bytes places);
  [[nodiscard]] std::int64_t size() const override { return keys_.size(); }
  void read(std::int64_t index, std::vector<std::byte>& bytes) const override;
  [[nodiscard]] std::string_view key(std::int64_t index) const override;
  [[nodiscard]] std::string name(std::int64_t index) const override;
  [[nodiscard]] std::optional<SampleFile> file_of(std::int64_t index) const override;
  [[nodiscard]] std::filesystem::path place() const override { return shards_.front()->path(); }
  [[nodiscard]] const std::vector<std::shared_ptr<const TarFile>>& shards() const { return shards_; }
  [[nodiscard]] const KeyList& keys() const { return keys_; }
  [[nodiscard]] Bytes places() const { return places_; }

 private:
  [[nodiscard]] TarPlace member(std::int64_t index) const;

  std::vector<std::shared_ptr<const TarFile>> shards_;
  KeyList keys_;
  std::shared_ptr<const void> owner_;
  Bytes places_;
};

}  // namespace stoker::data
