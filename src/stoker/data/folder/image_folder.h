// SPDX-License-Identifier: Apache-2.0
// Opens a folder (or a tar file) of labelled images: classes, splits and findings for people. Used by job. A function
// without state; the result is a value that threads may share for reading.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "stoker/base/file_stamp.h"
#include "stoker/data/folder/byte_source.h"
#include "stoker/data/order/label_list.h"
#include "stoker/data/order/sample_list.h"

namespace stoker::data {

struct SplitOptions {
  double val = 0.1;        // share of train used for validation if the data has no validation split; 0: none
  std::uint64_t seed = 0;  // selects these samples
  // false: only for inspection. Accepts a single class and classes missing in train, and gives no findings about these
  // or about images in both train and val.
  bool for_training = true;
  // true: folders are classes even if the data looks made for another task, which is an error otherwise.
  bool classes_meant = false;
};

// Where the result of the scan is kept.
struct IndexOptions {
  std::filesystem::path cache;       // folder; empty: not kept
  std::int64_t from_files = 10'000;  // with fewer files it is not kept: a scan is as fast
  std::int64_t (*clock)() = &file_clock;
};
// The default: in cache_folder().
[[nodiscard]] IndexOptions default_index();

struct ImageSplit {
  std::string name;  // "train", "val", "test"
  std::shared_ptr<const ByteSource> source;
  SampleList samples;  // indices into source, ascending
  LabelList labels;    // class of each sample, parallel to samples

  [[nodiscard]] std::int64_t size() const { return samples.size(); }
};

// The samples of a split at the positions in a sealed set (with inside = false: not in the set), with its name.
[[nodiscard]] ImageSplit part_of(const ImageSplit& split, std::shared_ptr<const BitSet> positions, bool inside);

struct ImageFolder {
  std::string layout;                 // "class folders", "split folders", "tar shards", "tar file", "labels.csv"
  std::vector<std::string> classes;   // sorted bytewise; the id of a class is its rank
  ImageSplit train, val, test;        // val and test may be empty; source is never null
  std::vector<std::string> findings;  // sentences for people, ready to print
};

// path: a folder with class folders, train/val/test folders (and synonyms), tar shards of such splits, or images and
// a labels.csv (filename,label[,split]); or one tar file that contains any of these.
// progress: called from time to time with the number of files seen. A scan takes O(n log n). Large data is scanned only
// the first time; later only the stamps of folders and tar files are compared, and the names stay in a mapped file.
// DataError, with what was found and what is expected, for: a missing or unreadable folder; no images; a single
// class; a class of val or test that is missing in train; data for another task; a tar or table that is damaged or
// names missing files. ConfigError for a share outside [0, 1).
[[nodiscard]] ImageFolder open_image_folder(const std::filesystem::path& path, const SplitOptions& options = {},
                                            const std::function<void(std::int64_t)>& progress = {},
                                            const IndexOptions& index = default_index());

}  // namespace stoker::data
