// SPDX-License-Identifier: Apache-2.0
// What lies in a folder or in tar files: the images by name, and a count of everything that is none. Says nothing of
// classes and splits. Used by open_image_folder. Thread-safe: no state.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "stoker/base/file_stamp.h"
#include "stoker/data/folder/tar.h"

namespace stoker::data {

// A number of things of a kind, and the first of them by name.
struct Tally {
  std::int64_t count = 0;
  std::string first;
  void add(std::string_view name);
};

struct ScannedFile {
  std::string path;         // relative to the root, '/' between parts, bytes
  std::int32_t shard = -1;  // which tar file; -1: a file of the folder
  std::int64_t offset = 0;  // bytes, in the shard
  std::int64_t size = 0;    // bytes, in the shard
};

// A folder that was walked through, as it was.
struct VisitedFolder {
  std::string path;  // relative to the root
  FileStamp stamp;   // from before it was read
  std::array<std::uint64_t, 2> listing = {};
  bool steady = true;  // FolderListing::steady
};

struct FolderScan {
  std::filesystem::path root;                          // of a folder
  std::vector<std::shared_ptr<const TarFile>> shards;  // of tar files
  std::vector<ScannedFile> images;                     // sorted by path, then shard
  std::vector<std::string> folders;                    // at most two levels deep, sorted; of a folder only
  std::vector<std::string> tars;                       // names of *.tar right under root, sorted
  ScannedFile labels;                                  // labels.csv right under root; empty path if there is none
  std::vector<ScannedFile> inner_labels;               // labels.csv one folder down
  std::vector<ScannedFile> notes;                      // *.xml, *.json, *.txt: what may be said of images
  Tally sounds;                                        // *.wav, *.flac, *.mp3, ...; passed over, too
  Tally other, hidden, special, broken_links, loops;   // passed over
  std::map<std::string, Tally> unsupported;            // passed over, by format as the name's ending tells it
  std::vector<VisitedFolder> visited;                  // of a folder only
  std::int64_t seen = 0;                               // files
};

// Walks folder and all below it, links followed. A name that ends in .jpg, .jpeg, .jpe, .jfif, .png, .webp or .npy, in
// any case, is an image; one without an ending is looked into. DataError for a folder that is missing or cannot be
// read.
[[nodiscard]] FolderScan scan_folder(const std::filesystem::path& folder,
                                     const std::function<void(std::int64_t)>& progress);
// The members of tar files as one folder; the same path in two of them is two images.
[[nodiscard]] FolderScan scan_tars(const std::vector<std::filesystem::path>& tars,
                                   const std::function<void(std::int64_t)>& progress);

// What was passed over, as sentences for people.
void describe_passed_over(const FolderScan& scan, std::vector<std::string>& findings);

}  // namespace stoker::data
