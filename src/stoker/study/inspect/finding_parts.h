// SPDX-License-Identifier: Apache-2.0
// The findings of an inspection by what they are about, a file each, and the words that they share. Used by
// findings_of() alone. Thread-safe: no state.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "stoker/base/fmt.h"
#include "stoker/base/thousands.h"
#include "stoker/study/inspect/findings.h"

namespace stoker::study {

// Images that are the same or look alike: across splits, across classes, and the rest.
[[nodiscard]] std::vector<DataFinding> pair_findings(const Inspection& found);
// How the classes are filled.
[[nodiscard]] std::vector<DataFinding> class_findings(const Inspection& found, const InspectFigures& figures);
// What tells an image's class without a look at it: its format, its colours, its exact size. A network learns such a
// shortcut instead of what is to be seen.
[[nodiscard]] std::vector<DataFinding> tell_tales(const Inspection& found);

// One without images.
inline DataFinding finding(Grade grade, std::string id, std::string text, std::string example = "",
                           std::string advice = "", std::int64_t count = 0) {
  return {grade, std::move(id), std::move(text), std::move(example), std::move(advice), count, {}, {}};
}

// "1 image", "1,234 images".
inline std::string images_text(std::int64_t count) {
  return fmt::format("{} image{}", thousands(count), count == 1 ? "" : "s");
}
inline const char* is_are(std::int64_t count) { return count == 1 ? "is" : "are"; }

}  // namespace stoker::study
