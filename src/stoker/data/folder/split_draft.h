// SPDX-License-Identifier: Apache-2.0
// Builds an ImageSplit from labelled images, and takes the validation split from train. Used by open_image_folder.
// Thread-safe: no state.
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

// A file or tar member, with its name in the split.
struct DraftEntry {
  std::string key;
  std::int32_t shard = 0;   // number of the tar file in the split
  std::int64_t offset = 0;  // bytes
  std::int64_t size = 0;
};

struct LabelledFile {
  DraftEntry file;  // shard is -1 for a file of the folder
  std::string label;
};

struct SplitDraft {
  std::string name;                                    // "train", "val", "test"
  std::filesystem::path root;                          // the file of a key is root / key ...
  std::vector<std::shared_ptr<const TarFile>> shards;  // ... or a member of one of these
  std::vector<LabelledFile> files;
  bool given = false;  // the data has this split
};

// The labels of a split, each once, sorted bytewise.
[[nodiscard]] std::vector<std::string> classes_of(const SplitDraft& draft);

// Sorts by path (then shard) and numbers the labels. DataError for a label that is not in classes.
[[nodiscard]] ImageSplit make_split(SplitDraft draft, const std::vector<std::string>& classes);

// Moves a share of the samples of train to val: for each class with at least two samples the nearest whole number, at
// least one and never all, chosen by the counter RNG from (seed, index). Adds findings.
void carve_validation(ImageFolder& folder, const SplitOptions& options);

}  // namespace stoker::data
