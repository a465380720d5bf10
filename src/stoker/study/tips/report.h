// SPDX-License-Identifier: Apache-2.0
// The reports of the tips table: text for a terminal, JSON (docs/formats.md), and one page with bars. Called by the
// command line. Thread-safe: no state.
#pragma once

#include <string>
#include <string_view>

#include "stoker/study/tips/table.h"

namespace stoker::study {

// By tip, one line per model; at most 100 columns, except for long machine names and errors. Without the accuracies.
[[nodiscard]] std::string tips_text(const TipsTable& table);
// One line per network and schedule; empty without results.
[[nodiscard]] std::string accuracy_text(const std::vector<ScheduleAccuracy>& accuracies);

[[nodiscard]] std::string tips_json(const TipsTable& table);

// A self-contained page that shows the content of tips_json().
[[nodiscard]] std::string tips_page(const TipsTable& table);

}  // namespace stoker::study
