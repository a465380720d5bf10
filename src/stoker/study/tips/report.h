// SPDX-License-Identifier: Apache-2.0
// The tips table for people and for programs: lines for a terminal, JSON (docs/formats.md), and one page with bars.
// Called by the command line. Thread-safe: no state.
#pragma once

#include <string>
#include <string_view>

#include "stoker/study/tips/table.h"

namespace stoker::study {

// By tip, a line a model; at most 100 columns, but for machines and errors with long names. Without the accuracies.
[[nodiscard]] std::string tips_text(const TipsTable& table);
// A line a network and schedule; empty for none.
[[nodiscard]] std::string accuracy_text(const std::vector<ScheduleAccuracy>& accuracies);

[[nodiscard]] std::string tips_json(const TipsTable& table);

// A page that needs nothing else; it shows what tips_json() holds.
[[nodiscard]] std::string tips_page(const TipsTable& table);

}  // namespace stoker::study
