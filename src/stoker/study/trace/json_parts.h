// SPDX-License-Identifier: Apache-2.0
// What the JSON texts and pages of traces are made of. Used by the files beside this one. Thread-safe: no state.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>

#include "stoker/study/trace/report.h"

namespace stoker::study {

inline constexpr std::size_t kMostRows = 200;  // of each table

[[nodiscard]] inline double ms(double ns) { return ns * 1e-6; }
[[nodiscard]] inline double ms(std::int64_t ns) { return static_cast<double>(ns) * 1e-6; }

// Everything about one trace.
[[nodiscard]] nlohmann::ordered_json facts_json(const observe::trace::TraceFacts& facts);
// The contents of trace_json() and comparison_json().
[[nodiscard]] nlohmann::ordered_json traces_object(const Traces& traces);
[[nodiscard]] nlohmann::ordered_json comparison_object(const observe::trace::TraceFacts& before,
                                                       const observe::trace::TraceFacts& after);
// What a cause of idle time is called, by its key.
[[nodiscard]] nlohmann::ordered_json cause_words();
// One step, or a part of a trace without steps, as rows of events to draw. step: from 0; -1: one of median duration.
// most_events: the longest ones.
[[nodiscard]] nlohmann::ordered_json time_line(const observe::trace::TraceFacts& facts, std::int64_t step,
                                               std::size_t most_events);

}  // namespace stoker::study
