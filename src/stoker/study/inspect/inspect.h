// SPDX-License-Identifier: Apache-2.0
// Inspects a folder of images: reads every image once and keeps the facts for the reports (report.h). Behind
// `stoker inspect`. The result is a value that threads may share for reading.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "stoker/data/folder/image_folder.h"
#include "stoker/study/inspect/image_look.h"
#include "stoker/study/inspect/same.h"

namespace stoker::study {

struct InspectProgress {
  std::int64_t files = 0;           // found so far, before the first image is inspected
  std::int64_t looked = 0, of = 0;  // images; of is 0 while files are still being found
  double rate = 0;                  // images per second
  double seconds_left = 0;
};

struct InspectOptions {
  std::int64_t images = 0;                                    // maximum, spread over the data; 0: all
  int threads = 0;                                            // 0: one per core that this process may use
  std::function<void(const InspectProgress&)> progress = {};  // called on the caller's thread
  std::function<bool()> stop = {};  // called by every thread after each image; true ends with the images so far
};

struct InspectedImage {
  int split = 0;           // 0 train, 1 val, 2 test
  std::int64_t index = 0;  // in the split's source
  std::int64_t label = 0;
  std::int64_t bytes = 0;  // of its file
  ImageLook facts;         // of a good one
};

struct Inspection {
  std::filesystem::path path;
  data::ImageFolder folder;
  std::int64_t total = 0;  // images in the data
  bool stopped = false;
  double seconds = 0;
  int threads = 0;
  std::vector<InspectedImage> images;      // inspected images, good and bad, by split and index
  std::map<std::size_t, std::string> bad;  // place of each bad image, and the reason
  PixelSums sums;                          // of the good ones
  std::vector<ImageGroup> same, alike;     // good images that are not plain, as places in images
  bool all_compared = true;

  [[nodiscard]] const data::ImageSplit& split(int number) const {
    return number == 0 ? folder.train : number == 1 ? folder.val : folder.test;
  }
  // For people: "pets/train/cat/1.jpg".
  [[nodiscard]] std::string name(std::size_t place) const {
    const InspectedImage& image = images[place];
    return split(image.split).source->name(image.index);
  }
};

// path: anything that data::open_image_folder() opens, and also a single class. DataError as there; ConfigError for
// options out of range.
[[nodiscard]] Inspection inspect_images(const std::filesystem::path& path, const InspectOptions& options);

}  // namespace stoker::study
