// SPDX-License-Identifier: Apache-2.0
// An inspection for people and for programs: lines for a terminal, JSON (docs/formats.md), and one page to look at.
// Called by the command line. Thread-safe: no state.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "stoker/study/inspect/figures.h"
#include "stoker/study/inspect/findings.h"
#include "stoker/study/inspect/inspect.h"

namespace stoker::study {

struct InspectReport {
  explicit InspectReport(Inspection inspection);

  Inspection found;
  InspectFigures figures;
  std::vector<DataFinding> findings;
  std::string stoker, date;  // version; of the end, UTC
};

// At most 100 columns, but for long names.
[[nodiscard]] std::string inspect_text(const InspectReport& report);
[[nodiscard]] std::string inspect_json(const InspectReport& report);
// A page that needs nothing else. Reads the images that it shows once more; those that are gone by then are left out.
[[nodiscard]] std::string inspect_page(const InspectReport& report);

// What inspect_json() holds; of each finding at most so many images and groups, these with their places as "id".
inline constexpr std::size_t kAllOfThem = static_cast<std::size_t>(-1);
[[nodiscard]] nlohmann::ordered_json inspect_members(const InspectReport& report, std::size_t most = kAllOfThem);

// "nothing wrong in 250 images", "2 things are wrong, 1 is doubtful in 250 images".
[[nodiscard]] std::string inspect_verdict(const InspectReport& report);

}  // namespace stoker::study
