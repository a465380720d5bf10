// SPDX-License-Identifier: Apache-2.0
// Looks at a folder (or a tar file) of labelled images and says what is in it: classes, splits, and remarks for
// people. Used by job. A function without state; the result is a value that threads may share to read.
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
  double val = 0.1;        // share of train that becomes the validation split where the data has none; 0: none
  std::uint64_t seed = 0;  // which samples these are
  // false: to look at the data only. A single class will do, and classes that train lacks; nothing is said of these nor
  // of images that are in train and in val.
  bool for_training = true;
  // Folders are classes, also where the data was laid out for another task, which is refused otherwise.
  bool classes_meant = false;
};

// Whether what was found is kept for the next time.
struct IndexOptions {
  std::filesystem::path cache;       // folder; empty: it is not
  std::int64_t from_files = 10'000;  // of fewer it is not: looking through them takes as long as reading what was kept
  std::int64_t (*clock)() = &file_clock;
};
// In cache_folder().
[[nodiscard]] IndexOptions default_index();

struct ImageSplit {
  std::string name;  // "train", "val", "test"
  std::shared_ptr<const ByteSource> source;
  SampleList samples;  // indices into source, ascending
  LabelList labels;    // class of each of them, parallel to samples

  [[nodiscard]] std::int64_t size() const { return samples.size(); }
};

// What of a split lies at the positions that are in a sealed set (or, with inside = false, are not), under its name.
[[nodiscard]] ImageSplit part_of(const ImageSplit& split, std::shared_ptr<const BitSet> positions, bool inside);

struct ImageFolder {
  std::string layout;                 // "class folders", "split folders", "tar shards", "tar file", "labels.csv"
  std::vector<std::string> classes;   // sorted bytewise; a class's id is its rank
  ImageSplit train, val, test;        // val and test may be empty; source is never null
  std::vector<std::string> findings;  // sentences for people, ready to print
};

// path: a folder with class folders, train/val/test folders (and synonyms), tar shards of such splits, or images and
// a labels.csv (filename,label[,split]); or one tar file that holds any of the three.
// progress: called now and then with the number of files seen. Scans in O(n log n), large data the first time only;
// after that it asks each folder and tar file whether it is unchanged, and the names stay in a mapped file.
// DataError, saying what was found and what is expected, for: a missing or unreadable folder; no images; a single
// class; a class of val or test that train lacks; data that was laid out for another task; a tar or table that is
// damaged or names what is not there. ConfigError for a share outside [0, 1).
[[nodiscard]] ImageFolder open_image_folder(const std::filesystem::path& path, const SplitOptions& options = {},
                                            const std::function<void(std::int64_t)>& progress = {},
                                            const IndexOptions& index = default_index());

}  // namespace stoker::data
