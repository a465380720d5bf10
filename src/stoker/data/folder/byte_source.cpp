// SPDX-License-Identifier: Apache-2.0
#include "stoker/data/folder/byte_source.h"

#include <cstring>
#include <utility>

#include "stoker/base/error.h"
#include "stoker/base/file.h"

namespace stoker::data {
namespace {

std::string_view at(const KeyList& keys, std::int64_t index) {
  if (index < 0 || index >= keys.size()) {
    fail<DataError>("data.source", "sample {} is out of range; the source has {} samples", index, keys.size());
  }
  return keys[index];
}

}  // namespace

FolderSource::FolderSource(std::filesystem::path root, KeyList keys) : root_(std::move(root)), keys_(std::move(keys)) {}

void FolderSource::read(std::int64_t index, std::vector<std::byte>& bytes) const {
  read_file(root_ / at(keys_, index), bytes, kMostSampleBytes);
}

void FolderSource::read_timed(std::int64_t index, std::vector<std::byte>& bytes, StageLaps& laps) const {
  const std::filesystem::path path = root_ / at(keys_, index);
  const InputFile file(path, kMostSampleBytes);
  laps.enter(Stage::kRead);
  file.read(bytes);
}

std::string_view FolderSource::key(std::int64_t index) const { return at(keys_, index); }

std::string FolderSource::name(std::int64_t index) const { return printable((root_ / at(keys_, index)).native()); }

std::optional<SampleFile> FolderSource::file_of(std::int64_t index) const {
  const std::optional<FileStamp> stamp = stamp_of(root_ / at(keys_, index));
  return stamp ? std::optional(SampleFile{*stamp, 0}) : std::nullopt;
}

TarSource::TarSource(std::vector<std::shared_ptr<const TarFile>> shards, KeyList keys,
                     std::shared_ptr<const void> owner, Bytes places)
    : shards_(std::move(shards)), keys_(std::move(keys)), owner_(std::move(owner)), places_(places) {}

TarPlace TarSource::member(std::int64_t index) const {
  (void)at(keys_, index);
  TarPlace place;
  std::memcpy(&place, places_.data() + static_cast<std::size_t>(index) * sizeof place, sizeof place);
  return place;
}

void TarSource::read(std::int64_t index, std::vector<std::byte>& bytes) const {
  const TarPlace at_place = member(index);
  shards_[static_cast<std::size_t>(at_place.shard)]->read(at_place.offset, at_place.size, bytes);
}

std::string_view TarSource::key(std::int64_t index) const { return at(keys_, index); }

// Stamp of the open file, so that a replaced file is noticed.
std::optional<SampleFile> TarSource::file_of(std::int64_t index) const {
  const TarPlace at_place = member(index);
  return SampleFile{shards_[static_cast<std::size_t>(at_place.shard)]->stamp(), at_place.offset};
}

std::string TarSource::name(std::int64_t index) const {
  const TarFile& shard = *shards_[static_cast<std::size_t>(member(index).shard)];
  return printable(fmt::format("{}: {}", shard.path().native(), keys_[index]));
}

}  // namespace stoker::data
