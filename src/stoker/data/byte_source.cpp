// SPDX-License-Identifier: Apache-2.0
#include "stoker/data/byte_source.h"

#include <utility>

#include "stoker/base/error.h"
#include "stoker/base/file.h"

namespace stoker::data {
namespace {

template <typename T>
const T& at(const std::vector<T>& list, std::int64_t index) {
  if (index < 0 || index >= static_cast<std::int64_t>(list.size())) {
    fail<DataError>("data.source", "sample {} is outside a source of {} samples", index, list.size());
  }
  return list[static_cast<std::size_t>(index)];
}

}  // namespace

FolderSource::FolderSource(std::filesystem::path root, std::vector<std::string> keys)
    : root_(std::move(root)), keys_(std::move(keys)) {}

void FolderSource::read(std::int64_t index, std::vector<std::byte>& bytes) const {
  read_file(root_ / at(keys_, index), bytes);
}

void FolderSource::read_timed(std::int64_t index, std::vector<std::byte>& bytes, StageLaps& laps) const {
  const std::filesystem::path path = root_ / at(keys_, index);
  const InputFile file(path);
  laps.enter(Stage::kRead);
  file.read(bytes);
}

std::string_view FolderSource::key(std::int64_t index) const { return at(keys_, index); }

std::string FolderSource::name(std::int64_t index) const { return printable((root_ / at(keys_, index)).native()); }

TarSource::TarSource(std::vector<std::shared_ptr<const TarFile>> shards, std::vector<TarEntry> entries)
    : shards_(std::move(shards)), entries_(std::move(entries)) {}

void TarSource::read(std::int64_t index, std::vector<std::byte>& bytes) const {
  const TarEntry& entry = at(entries_, index);
  shards_[static_cast<std::size_t>(entry.shard)]->read(entry.offset, entry.size, bytes);
}

std::string_view TarSource::key(std::int64_t index) const { return at(entries_, index).key; }

std::string TarSource::name(std::int64_t index) const {
  const TarEntry& entry = at(entries_, index);
  return printable(fmt::format("{}: {}", shards_[static_cast<std::size_t>(entry.shard)]->path().native(), entry.key));
}

}  // namespace stoker::data
