// SPDX-License-Identifier: Apache-2.0
// Date and time for records and reports. Thread-safe: no state.
#pragma once

#include <string>

namespace stoker {

// Now, in UTC, in a format of strftime(3), with at most 63 characters: "%Y-%m-%dT%H:%M:%SZ".
[[nodiscard]] std::string utc_now(const char* format);

}  // namespace stoker
