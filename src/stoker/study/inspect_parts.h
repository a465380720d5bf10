// SPDX-License-Identifier: Apache-2.0
// What the reports of pictures and of tables and texts share: findings and distributions in words and as JSON. Used by
// inspect_text, inspect_json and data_sheet. Thread-safe: no state.
#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "stoker/study/inspect_figures.h"
#include "stoker/study/inspect_findings.h"

namespace stoker::study {

// Lines of at most 100 columns, broken at blanks; the first begins with head, the others with `indent` blanks.
[[nodiscard]] std::string wrapped(const std::string& head, const std::string& text, std::size_t indent);

// A paragraph for each grade.
[[nodiscard]] std::string findings_text(const std::vector<Finding>& findings);

// "Nothing wrong in 250 pictures", "2 things are wrong, 1 is doubtful in 250 pictures". looked_at: "250 pictures".
[[nodiscard]] std::string verdict_of(const std::vector<Finding>& findings, const std::string& looked_at);

// Grade, id, text, example, advice, count.
[[nodiscard]] nlohmann::ordered_json finding_members(const Finding& finding);
[[nodiscard]] nlohmann::ordered_json distribution_json(const Distribution& values);

}  // namespace stoker::study
