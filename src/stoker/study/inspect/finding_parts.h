// SPDX-License-Identifier: Apache-2.0
// The groups of findings, one file per group, and helpers that they share. Used only by findings_of().
// Thread-safe: no state.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "stoker/base/fmt.h"
#include "stoker/base/thousands.h"
#include "stoker/study/inspect/findings.h"

namespace stoker::study {

// Images that are the same or look similar: across splits, across classes, and within a class.
[[nodiscard]] std::vector<DataFinding> pair_findings(const Inspection& found);
// Classes without images, with few images, or of very different size.
[[nodiscard]] std::vector<DataFinding> class_findings(const Inspection& found, const InspectFigures& figures);
// Properties that predict the class of an image without its content: format, colours, exact size. A network learns
// such a shortcut instead of the content.
[[nodiscard]] std::vector<DataFinding> tell_tales(const Inspection& found);

// A finding without images.
inline DataFinding finding(Grade grade, std::string id, std::string text, std::string example = "",
                           std::string advice = "", std::int64_t count = 0) {
  return {.grade = grade,
          .id = std::move(id),
          .text = std::move(text),
          .example = std::move(example),
          .advice = std::move(advice),
          .count = count,
          .images = {},
          .groups = {}};
}

// "1 image", "1,234 images".
inline std::string images_text(std::int64_t count) {
  return fmt::format("{} image{}", thousands(count), count == 1 ? "" : "s");
}
inline const char* is_are(std::int64_t count) { return count == 1 ? "is" : "are"; }

}  // namespace stoker::study
