// SPDX-License-Identifier: Apache-2.0
// Parses the text that a person gave for a named value. Used by the options of train and tasks. ConfigErrors name the
// value, what was expected and what came. Thread-safe: no state.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "stoker/base/nearest.h"

namespace stoker {

// ConfigError: key must be <expected>, got "text".
[[noreturn]] void refuse_value(std::string_view key, std::string_view text, std::string_view expected);

// The whole text must be the number; NaN and values outside low ... high are rejected.
[[nodiscard]] std::int64_t parse_whole(std::string_view key, std::string_view text, std::int64_t low,
                                       std::int64_t high);
[[nodiscard]] double parse_real(std::string_view key, std::string_view text, double low, double high);
// on, yes, true, 1; off, no, false, 0.
[[nodiscard]] bool parse_flag(std::string_view key, std::string_view text);
// One of names; else an error with the nearest one.
[[nodiscard]] std::string parse_choice(std::string_view key, std::string_view text,
                                       const std::vector<std::string>& names);

}  // namespace stoker
