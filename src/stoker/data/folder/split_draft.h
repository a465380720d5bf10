// SPDX-License-Identifier: Apache-2.0
// Images with labels on their way to an ImageSplit, and the part of training that becomes the validation split. Used
// by open_image_folder. Thread-safe: no state.
#pragma once

#include <array>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "stoker/data/folder/image_folder.h"
#include "stoker/data/folder/tar.h"

namespace stoker::data {

inline constexpr std::array<std::string_view, 3> kSplits = {"train", "val", "test"};

// A file, or a member of a tar file, under the name that it has in the split.
struct DraftEntry {
  std::string key;
  std::int32_t shard = 0;   // which of the split's tar files
  std::int64_t offset = 0;  // bytes
  std::int64_t size = 0;
};

struct LabelledFile {
  DraftEntry file;  // shard is -1 for a file of the folder
  std::string label;
};

struct SplitDraft {
  std::string name;                                    // "train", "val", "test"
  std::filesystem::path root;                          // files lie at root / key ...
  std::vector<std::shared_ptr<const TarFile>> shards;  // ... or are members of these
  std::vector<LabelledFile> files;
  bool given = false;  // the data has this split
};

// The labels of a split, each once, sorted bytewise.
[[nodiscard]] std::vector<std::string> classes_of(const SplitDraft& draft);

// Sorts by path (then shard) and numbers the labels. DataError for a label that is not among classes.
[[nodiscard]] ImageSplit make_split(SplitDraft draft, const std::vector<std::string>& classes);

// Moves a share of train's samples to val: of each class with at least two samples, the nearest whole number but at
// least one and never all, chosen by the counter RNG from (seed, index). Says what it did.
void carve_validation(ImageFolder& folder, const SplitOptions& options);

}  // namespace stoker::data
