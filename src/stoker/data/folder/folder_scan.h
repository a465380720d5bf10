// SPDX-License-Identifier: Apache-2.0
// The content of a folder or of tar files: images by name, and counts of everything else. Does not know classes and
// splits. Used by open_image_folder. Thread-safe: no state.
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

// The number of things of one kind, and the first of them by name.
struct Tally {
  std::int64_t count = 0;
  std::string first;
  void add(std::string_view name);
};

struct ScannedFile {
  std::string path;         // relative to the root, '/' between parts, bytes
  std::int32_t shard = -1;  // number of the tar file; -1: a file of the folder
  std::int64_t offset = 0;  // bytes, in the shard
  std::int64_t size = 0;    // bytes, in the shard
};

// A folder that was walked, with its state then.
struct VisitedFolder {
  std::string path;  // relative to the root
  FileStamp stamp;   // from before the folder was read
  std::array<std::uint64_t, 2> listing = {};
  bool steady = true;  // FolderListing::steady
};

struct FolderScan {
  std::filesystem::path root;                          // the folder
  std::vector<std::shared_ptr<const TarFile>> shards;  // the tar files
  std::vector<ScannedFile> images;                     // sorted by path, then shard
  std::vector<std::string> folders;                    // at most two levels deep, sorted; only for a folder
  std::vector<std::string> tars;                       // names of *.tar directly under root, sorted
  ScannedFile labels;                                  // labels.csv directly under root; empty path if there is none
  std::vector<ScannedFile> inner_labels;               // labels.csv one level below root
  std::vector<ScannedFile> notes;                      // *.xml, *.json, *.txt: possible annotations
  Tally sounds;                                        // *.wav, *.flac, *.mp3, ...; also ignored
  Tally other, hidden, special, broken_links, loops;   // ignored
  std::map<std::string, Tally> unsupported;            // ignored, by format (name extension)
  std::vector<VisitedFolder> visited;                  // only for a folder
  std::int64_t seen = 0;                               // files
};

// Walks folder and everything below it; follows links. A name that ends in .jpg, .jpeg, .jpe, .jfif, .png, .webp or
// .npy, in any case, is an image. Files without an extension are recognised by their first bytes. DataError for a
// missing or unreadable folder.
[[nodiscard]] FolderScan scan_folder(const std::filesystem::path& folder,
                                     const std::function<void(std::int64_t)>& progress);
// The members of all tar files as one folder; the same path in two tar files is two images.
[[nodiscard]] FolderScan scan_tars(const std::vector<std::filesystem::path>& tars,
                                   const std::function<void(std::int64_t)>& progress);

// What was ignored, as sentences for people.
void describe_passed_over(const FolderScan& scan, std::vector<std::string>& findings);

}  // namespace stoker::data
