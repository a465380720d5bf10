// SPDX-License-Identifier: Apache-2.0
// What is wrong with the data, or may be: sentences for people, worst first, with the images that they are about.
// Used by the reports of an inspection. Thread-safe: no state.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "stoker/study/inspect/figures.h"
#include "stoker/study/inspect/inspect.h"

namespace stoker::study {

enum class Grade {
  kWrong,     // training on it misleads or fails
  kDoubtful,  // look at it
  kRemark,    // good to know
};
[[nodiscard]] std::string_view text_of(Grade grade);  // "wrong", "doubtful", "remark"

struct DataFinding {
  Grade grade = Grade::kRemark;
  std::string id;                   // "leak", "bad", "plain": stays the same from version to version
  std::string text;                 // a sentence without its dot
  std::string example;              // of the images; may be empty
  std::string advice;               // what to do; may be empty
  std::int64_t count = 0;           // of images or classes that it is about
  std::vector<std::size_t> images;  // places in Inspection::images
  std::vector<ImageGroup> groups;   // likewise, where images belong together
};

// What is looked for, stated for texts, documents and tests.
inline constexpr int kTinySide = 8;             // pixels: below it is tiny
inline constexpr double kExtremeAspect = 4;     // the long side by the short one
inline constexpr double kImbalance = 10;        // the largest class of train by the smallest
inline constexpr std::int64_t kFewImages = 10;  // of a class in train
inline constexpr double kTellTale = 0.25;       // share of the mistakes of guessing that knowing it would mend

[[nodiscard]] std::vector<DataFinding> findings_of(const Inspection& found, const InspectFigures& figures);

}  // namespace stoker::study
