// SPDX-License-Identifier: Apache-2.0
// Large data folders are looked through once: what was found is kept in a file of the cache, and used again for as long
// as the folders and files that it came from are unchanged. Whatever is wrong with that file, the data is looked
// through anew. Used by open_image_folder. Thread-safe: no state; of processes that write at once the last one wins.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <vector>

#include "stoker/data/folder/folder_scan.h"
#include "stoker/data/folder/image_folder.h"

namespace stoker::data {

// What lies at a path, before a validation split is carved off, and what that was read from.
struct KnownFolder {
  ImageFolder folder;
  bool has_val = false;     // the data has a validation split
  std::int64_t seen = 0;    // files
  std::int64_t looked = 0;  // the clock before the first look
  bool lasting = true;      // false: something in it cannot be told to be unchanged
  std::vector<VisitedFolder> folders;
  struct Read {
    std::filesystem::path path;
    FileStamp stamp;
  };
  std::vector<Read> files;  // beside the tar files of the sources
};

// Where the index of a path is kept.
[[nodiscard]] std::filesystem::path index_file(const std::filesystem::path& cache, const std::filesystem::path& path);

// What is known of the path, if nothing of it has changed: its keys lie in the mapped index. Empty otherwise.
[[nodiscard]] std::optional<KnownFolder> find_known(const std::filesystem::path& path, const IndexOptions& options);

// Keeps it, if it is large and can be kept; false if not, or if the disk refuses.
bool keep_known(const std::filesystem::path& path, const KnownFolder& known, const IndexOptions& options);

}  // namespace stoker::data
