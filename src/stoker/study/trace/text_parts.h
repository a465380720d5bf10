// SPDX-License-Identifier: Apache-2.0
// What the texts of traces are made of. Used by text.cpp and text_sides.cpp. Thread-safe: no state.
#pragma once

#include <cstdint>
#include <string>

#include "stoker/study/trace/report.h"

namespace stoker::study {

// Three digits with a unit that fits: "352 ms", "1.05 s", "8.20 us".
[[nodiscard]] std::string time_text(double ns);
[[nodiscard]] std::string time_text(std::int64_t ns);
[[nodiscard]] double share(std::int64_t part, std::int64_t whole);
// " 12.5 %".
[[nodiscard]] std::string percent(std::int64_t part, std::int64_t whole);
// Cut in the middle: kernels of one template differ at the end.
[[nodiscard]] std::string fitted(const std::string& name, std::size_t width);
// File, size, steps.
[[nodiscard]] std::string head_text(const observe::trace::TraceFacts& facts);
[[nodiscard]] std::string ranks_text(const observe::trace::RanksFacts& facts);

}  // namespace stoker::study
