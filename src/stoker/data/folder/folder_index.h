// SPDX-License-Identifier: Apache-2.0
// Large data folders are scanned once. The result is kept in the cache and reused while the folders and files are
// unchanged. If anything is wrong with the cached file, the data is scanned again. Used by open_image_folder.
// Thread-safe: no state; if several processes write at once, the last one wins.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <vector>

#include "stoker/data/folder/folder_scan.h"
#include "stoker/data/folder/image_folder.h"

namespace stoker::data {

// The content of a path, before the validation split is made, and the folders and files that were read.
struct KnownFolder {
  ImageFolder folder;
  bool has_val = false;     // the data has a validation split
  std::int64_t seen = 0;    // files
  std::int64_t looked = 0;  // the clock before the scan
  bool lasting = true;      // false: some change could not be detected
  std::vector<VisitedFolder> folders;
  struct Read {
    std::filesystem::path path;
    FileStamp stamp;
  };
  std::vector<Read> files;  // besides the tar files of the sources
};

// The cache file for the index of a path.
[[nodiscard]] std::filesystem::path index_file(const std::filesystem::path& cache, const std::filesystem::path& path);

// The cached content if nothing has changed, with its keys in the mapped index. Empty otherwise.
[[nodiscard]] std::optional<KnownFolder> find_known(const std::filesystem::path& path, const IndexOptions& options);

// Writes the index if the content is large and lasting. False if not written, also if the disk refuses.
bool keep_known(const std::filesystem::path& path, const KnownFolder& known, const IndexOptions& options);

}  // namespace stoker::data
