// SPDX-License-Identifier: Apache-2.0
#include "stoker/data/folder/foreign_layout.h"

#include <algorithm>
#include <fstream>

#include "stoker/base/error.h"
#include "stoker/base/file.h"

namespace stoker::data {
namespace {

constexpr std::int64_t kSoundsAImage = 10;  // sounds per image; recordings may come with a cover or a logo

std::optional<ForeignLayout> find_sounds(const FolderScan& scan) {
  auto images = static_cast<std::int64_t>(scan.images.size());
  for (const auto& [ending, files] : scan.unsupported) {
    images += files.count;
  }
  if (scan.sounds.count == 0 || scan.sounds.count < kSoundsAImage * images) {
    return std::nullopt;
  }
  return ForeignLayout{"audio", fmt::format("it has {} sound files, for example {}, and {} images", scan.sounds.count,
                                            printable(scan.sounds.first), images)};
}

std::string piece_of(const FolderScan& scan, const ScannedFile& file, std::int64_t first, std::int64_t count) {
  if (file.shard >= 0) {
    std::vector<std::byte> bytes;
    scan.shards[static_cast<std::size_t>(file.shard)]->read(file.offset + first, count, bytes);
    return std::string(as_text(bytes));
  }
  std::ifstream in(scan.root / file.path, std::ios::binary);
  std::string text(static_cast<std::size_t>(count), '\0');
  in.seekg(first);
  in.read(text.data(), count);
  text.resize(static_cast<std::size_t>(std::max<std::streamsize>(0, in.gcount())));
  return text;
}

}  // namespace

std::string ends_of(const FolderScan& scan, const ScannedFile& file, std::int64_t head, std::int64_t tail) {
  std::error_code error;
  const std::int64_t size =
      file.shard >= 0 ? file.size : static_cast<std::int64_t>(std::filesystem::file_size(scan.root / file.path, error));
  if (error || size <= 0) {
    return "";
  }
  try {
    if (size <= head + tail) {
      return piece_of(scan, file, 0, size);
    }
    return piece_of(scan, file, 0, head) + (tail > 0 ? "\n" + piece_of(scan, file, size - tail, tail) : "");
  } catch (const DataError&) {  // this was only a check: an unreadable file decides nothing
    return "";
  }
}

std::optional<ForeignLayout> foreign_layout(const FolderScan& scan) {
  for (const auto find : {find_sounds, find_boxes, find_masks}) {
    if (std::optional<ForeignLayout> found = find(scan)) {
      return found;
    }
  }
  return std::nullopt;
}

}  // namespace stoker::data
