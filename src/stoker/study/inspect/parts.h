// SPDX-License-Identifier: Apache-2.0
// Shared by the reports of images, tables and texts: findings and distributions as text and as JSON. Used by
// inspect_text, inspect_json and data_sheet. Thread-safe: no state.
#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "stoker/study/inspect/figures.h"
#include "stoker/study/inspect/findings.h"

namespace stoker::study {

// Lines of at most 100 columns, broken at blanks. The first starts with head, the others with `indent` blanks.
[[nodiscard]] std::string wrapped(const std::string& head, const std::string& text, std::size_t indent);

// One paragraph per grade.
[[nodiscard]] std::string findings_text(const std::vector<DataFinding>& findings);

// "Nothing wrong in 250 images", "2 things are wrong, 1 is doubtful in 250 images". looked_at: "250 images".
[[nodiscard]] std::string verdict_of(const std::vector<DataFinding>& findings, const std::string& looked_at);

// Grade, id, text, example, advice, count.
[[nodiscard]] nlohmann::ordered_json finding_members(const DataFinding& finding);
[[nodiscard]] nlohmann::ordered_json distribution_json(const Distribution& values);

}  // namespace stoker::study
