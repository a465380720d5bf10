// SPDX-License-Identifier: Apache-2.0
// The index of a data folder as bytes: what it was made of, and which samples of which classes were found
// (docs/formats.md). Works on spans and takes nothing on trust. Used by folder_index. Thread-safe: no state.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "stoker/base/file.h"
#include "stoker/base/file_stamp.h"
#include "stoker/data/order/label_list.h"

namespace stoker::data {

// Paths are relative to the indexed one; empty: itself.
struct IndexedFolder {
  std::string path;
  FileStamp stamp;
  bool settled = false;  // the stamp tells of every change
  std::array<std::uint64_t, 2> listing = {};
  bool operator==(const IndexedFolder&) const = default;
};
struct IndexedFile {  // that was read: a tar file, labels.csv
  std::string path;
  FileStamp stamp;
  bool settled = false;
  bool operator==(const IndexedFile&) const = default;
};

struct IndexedSplit {
  std::string root;                   // of its files
  std::vector<std::uint64_t> shards;  // which of the index's files they are members of; empty: they lie in the folder
  Bytes ends, text;                   // as KeyList's
  Bytes places;                       // a TarPlace each; empty without shards
  std::vector<LabelRun> labels;
};

// Its Bytes are borrowed: from the file that it was read from, or from the sources that it is written from.
struct FolderIndex {
  std::string program;  // the version that wrote it: another one may tell images from other files another way
  std::string path;     // real, absolute
  std::vector<IndexedFolder> folders;
  std::vector<IndexedFile> files;
  std::int64_t seen = 0;  // files
  bool has_val = false;   // the data has a validation split
  std::string layout;
  std::vector<std::string> findings, classes;
  std::array<IndexedSplit, 3> splits;  // train, val, test
};

// Hands the file's bytes to put, a piece after the other.
void write_index(const FolderIndex& index, const std::function<void(Bytes)>& put);

// Whether these are the bytes of a whole index of this version: length and checksum.
[[nodiscard]] bool index_is_whole(Bytes file);
// What it says, where no number leads out of it; empty for anything else. Does not look at the checksum.
[[nodiscard]] std::optional<FolderIndex> parse_index(Bytes file);

}  // namespace stoker::data
