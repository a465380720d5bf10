// SPDX-License-Identifier: Apache-2.0
// Any bytes are accepted as a folder's index or rejected. An accepted index refers to nothing outside itself, and is
// written again as the same bytes, except for the checksum at its end, which parse_index() does not check.
#include <algorithm>
#include <cstring>
#include <memory>

#include "fuzz_target.h"
#include "stoker/data/folder/byte_source.h"
#include "stoker/data/folder/index_file.h"

namespace stoker::fuzz {
namespace {

constexpr std::size_t kTail = 24;  // length, checksum (docs/formats.md)

void check_split(const data::IndexedSplit& split, const data::FolderIndex& index, Bytes file) {
  const data::KeyList keys(nullptr, split.ends, split.text);
  for (std::int64_t i = 0; i < keys.size(); ++i) {
    const std::string_view key = keys[i];
    const auto* begin = reinterpret_cast<const std::byte*>(key.data());
    expect(key.empty() || (begin >= file.data() && begin + key.size() <= file.data() + file.size()),
           "keys are inside the file");
  }
  for (const std::uint64_t shard : split.shards) {
    expect(shard < index.files.size(), "shards are files of the index");
  }
  for (std::size_t at = 0; at < split.places.size(); at += sizeof(data::TarPlace)) {
    data::TarPlace place;
    std::memcpy(&place, split.places.data() + at, sizeof place);
    expect(place.shard >= 0 && place.shard < std::ssize(split.shards), "places are in shards");
  }
  std::int64_t labelled = 0;
  for (const data::LabelRun& run : split.labels) {
    expect(run.count >= 0 && run.label < index.classes.size(), "labels are classes");
    labelled += run.count;
  }
  expect(labelled == keys.size(), "each key has a label");
}

}  // namespace
}  // namespace stoker::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace stoker;
  const Bytes file = std::as_bytes(std::span(data, size));
  const bool whole = data::index_is_whole(file);
  const std::optional<data::FolderIndex> index = data::parse_index(file);
  if (!index) {
    return 0;
  }
  for (const data::IndexedSplit& split : index->splits) {
    fuzz::check_split(split, *index, file);
  }
  std::vector<std::byte> again;
  data::write_index(*index, [&](Bytes piece) { again.insert(again.end(), piece.begin(), piece.end()); });
  fuzz::expect(again.size() == size, "the length is the same");
  fuzz::expect(std::equal(again.begin(), again.end() - fuzz::kTail, file.begin()), "written as it was read");
  fuzz::expect(data::index_is_whole(again), "a written index is whole");
  fuzz::expect(!whole || std::ranges::equal(again, file), "a whole index is written with the same checksum");
  return 0;
}
