// SPDX-License-Identifier: Apache-2.0
// One cell of a comma-separated file, after RFC 4180. Thread-safe: no state.
#pragma once

#include <string>
#include <string_view>

namespace stoker {

// Quoted if necessary.
[[nodiscard]] inline std::string csv_cell(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) {
    return std::string(text);
  }
  std::string quoted = "\"";
  for (const char c : text) {
    quoted += c == '"' ? "\"\"" : std::string(1, c);
  }
  return quoted + '"';
}

}  // namespace stoker
