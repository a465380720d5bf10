// SPDX-License-Identifier: Apache-2.0
// The index of a data folder as bytes: the folders and files it was made from, and the samples with their classes
// (docs/formats.md). Works on spans and checks every value. Used by folder_index. Thread-safe: no state.
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

// Paths are relative to the indexed path; empty: the indexed path itself.
struct IndexedFolder {
  std::string path;
  FileStamp stamp;
  bool settled = false;  // the stamp detects every change
  std::array<std::uint64_t, 2> listing = {};
  bool operator==(const IndexedFolder&) const = default;
};
struct IndexedFile {  // a file that was read: a tar file, labels.csv
  std::string path;
  FileStamp stamp;
  bool settled = false;
  bool operator==(const IndexedFile&) const = default;
};

struct IndexedSplit {
  std::string root;                   // of the files
  std::vector<std::uint64_t> shards;  // numbers of the tar files in the index; empty: files of the folder
  Bytes ends, text;                   // as in KeyList
  Bytes places;                       // one TarPlace per key; empty without shards
  std::vector<LabelRun> labels;
};

// Bytes are borrowed from the file that was read, or from the sources that are written.
struct FolderIndex {
  std::string program;  // version that wrote it; another version may recognise images differently
  std::string path;     // real, absolute
  std::vector<IndexedFolder> folders;
  std::vector<IndexedFile> files;
  std::int64_t seen = 0;  // files
  bool has_val = false;   // the data has a validation split
  std::string layout;
  std::vector<std::string> findings, classes;
  std::array<IndexedSplit, 3> splits;  // train, val, test
};

// Passes the bytes of the file to put, piece by piece.
void write_index(const FolderIndex& index, const std::function<void(Bytes)>& put);

// Whether the bytes are a complete index of this version: checks length and checksum.
[[nodiscard]] bool index_is_whole(Bytes file);
// The parsed index; empty if any number is out of range. Does not check the checksum.
[[nodiscard]] std::optional<FolderIndex> parse_index(Bytes file);

}  // namespace stoker::data
