// SPDX-License-Identifier: Apache-2.0
// The reports of an inspection: text for a terminal, JSON (docs/formats.md), and an HTML page. Called by the command
// line. Thread-safe: no state.
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
  std::string stoker, date;  // version; time of the end, UTC
};

// At most 100 columns, except for long names.
[[nodiscard]] std::string inspect_text(const InspectReport& report);
[[nodiscard]] std::string inspect_json(const InspectReport& report);
// A self-contained page. Reads the images that it shows again; deleted images are left out.
[[nodiscard]] std::string inspect_page(const InspectReport& report);

// The content of inspect_json(), with limited numbers of images and groups per finding, and the place of each as "id".
inline constexpr std::size_t kAllOfThem = static_cast<std::size_t>(-1);
[[nodiscard]] nlohmann::ordered_json inspect_members(const InspectReport& report, std::size_t most = kAllOfThem);

// "Nothing wrong in 250 images", "2 things are wrong, 1 is doubtful in 250 images".
[[nodiscard]] std::string inspect_verdict(const InspectReport& report);

}  // namespace stoker::study
