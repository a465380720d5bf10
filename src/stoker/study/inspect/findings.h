// SPDX-License-Identifier: Apache-2.0
// Problems and possible problems of the data: sentences for people, worst first, each with the images concerned.
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
  kWrong,     // training fails or gives misleading results
  kDoubtful,  // worth a look
  kRemark,    // good to know
};
[[nodiscard]] std::string_view text_of(Grade grade);  // "wrong", "doubtful", "remark"

struct DataFinding {
  Grade grade = Grade::kRemark;
  std::string id;                   // "leak", "bad", "plain": the same in every version
  std::string text;                 // a sentence without its full stop
  std::string example;              // of the images; may be empty
  std::string advice;               // what to do; may be empty
  std::int64_t count = 0;           // images or classes concerned
  std::vector<std::size_t> images;  // places in Inspection::images
  std::vector<ImageGroup> groups;   // the same, for images that belong together
};

// Limits of the findings, used by texts, documents and tests.
inline constexpr int kTinySide = 8;             // pixels; smaller is tiny
inline constexpr double kExtremeAspect = 4;     // long side / short side
inline constexpr double kImbalance = 10;        // largest class of train / smallest
inline constexpr std::int64_t kFewImages = 10;  // per class in train
inline constexpr double kTellTale = 0.25;       // share of the errors of guessing that the property removes

[[nodiscard]] std::vector<DataFinding> findings_of(const Inspection& found, const InspectFigures& figures);

}  // namespace stoker::study
