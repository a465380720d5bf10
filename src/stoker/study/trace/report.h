// SPDX-License-Identifier: Apache-2.0
// What is known of recorded traces, as text for a terminal, as JSON (docs/formats.md) and as self-contained pages.
// Facts without verdicts. Called by `stoker trace`. Thread-safe: no state.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "stoker/observe/trace/facts/compare.h"
#include "stoker/observe/trace/facts/facts.h"
#include "stoker/observe/trace/facts/ranks.h"

namespace stoker::study {

using Traces = std::vector<std::unique_ptr<observe::trace::TraceFacts>>;

struct TraceReportOptions {
  std::size_t rows = 15;   // of each table in the text
  std::int64_t step = -1;  // of the page's time line, counted from 0; -1: the one of median duration
};

// One trace, or several ranks of one training.
[[nodiscard]] std::string trace_text(const Traces& traces, const TraceReportOptions& options = {});
[[nodiscard]] std::string trace_json(const Traces& traces);
// A page of one trace, or of each rank after the other.
[[nodiscard]] std::string trace_page(const Traces& traces, const TraceReportOptions& options = {});

// Two traces of one program, before and after a change.
[[nodiscard]] std::string comparison_text(const observe::trace::TraceFacts& before,
                                          const observe::trace::TraceFacts& after,
                                          const TraceReportOptions& options = {});
[[nodiscard]] std::string comparison_json(const observe::trace::TraceFacts& before,
                                          const observe::trace::TraceFacts& after);
[[nodiscard]] std::string comparison_page(const observe::trace::TraceFacts& before,
                                          const observe::trace::TraceFacts& after);

// What of a trace could not be used, one sentence each; empty for a whole trace.
[[nodiscard]] std::vector<std::string> damage_words(const observe::trace::Damage& damage);

}  // namespace stoker::study
