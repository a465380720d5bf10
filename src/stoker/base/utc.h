// SPDX-License-Identifier: Apache-2.0
// The time of day, as records and reports carry it. Thread-safe: no state.
#pragma once

#include <string>

namespace stoker {

// Now, in UTC, by a format of strftime(3), of at most 63 characters when filled in: "%Y-%m-%dT%H:%M:%SZ".
[[nodiscard]] std::string utc_now(const char* format);

}  // namespace stoker
