// SPDX-License-Identifier: Apache-2.0
// Date and time for records and reports. Thread-safe: no state.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace stoker {

// Now, in UTC, in a format of strftime(3), with at most 63 characters: "%Y-%m-%dT%H:%M:%SZ".
[[nodiscard]] std::string utc_now(const char* format);

// Now, in seconds or milliseconds since 1970, as other programs' records have it; may go back.
[[nodiscard]] inline double unix_s() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}
[[nodiscard]] inline std::int64_t unix_ms() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}

}  // namespace stoker
