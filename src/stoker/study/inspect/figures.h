// SPDX-License-Identifier: Apache-2.0
// An inspection in numbers: counts by split, class and kind of image, distributions of sizes, channel statistics.
// Used by the text, the JSON and the page. Thread-safe: no state.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "stoker/study/inspect/inspect.h"

namespace stoker::study {

struct Bin {
  double from = 0, to = 0;  // from <= value < to; the last bin includes its end
  std::int64_t count = 0;
};

struct Distribution {
  double least = 0, low = 0, median = 0, high = 0, most = 0;  // low and high: 5th and 95th percentile
  std::vector<Bin> bins;  // one per value if there are few, else of equal ratio or width; empty without values
};

enum class Bins { kEqualRatio, kEqualWidth };
// Values must be finite; for bins of equal ratio also above 0.
[[nodiscard]] Distribution distribution_of(std::vector<double> values, Bins bins);

struct SplitCount {
  std::string name;
  std::int64_t images = 0, looked = 0, bad = 0;
  std::vector<std::int64_t> by_class;  // images of each class, inspected or not
};

struct InspectFigures {
  std::vector<SplitCount> splits;                      // only splits with images
  std::map<std::string, std::int64_t> formats, modes;  // of good images: "JPEG"; "colour", "grey", "CMYK", ...
  std::map<int, std::int64_t> orientations;            // EXIF, 1 ... 8
  std::int64_t good = 0, bytes = 0;                    // bytes of all inspected files
  Distribution width, height, aspect, file_bytes;      // of good images; aspect is width / height
  bool grey = true;                                    // true: every good image is grey, one channel is enough
  std::vector<double> mean, deviation;                 // per channel (1 or 3), values 0 ... 1; empty without an image
};

// "grey", "grey + alpha", "colour", "colour + alpha", "CMYK".
[[nodiscard]] std::string mode_of(const ImageLook& facts);

[[nodiscard]] InspectFigures figures_of(const Inspection& found);

}  // namespace stoker::study
