// SPDX-License-Identifier: Apache-2.0
// The record of a profile for people: what `stoker profile` prints. Thread-safe: no state.
#pragma once

#include <string>

namespace stoker::job {

// record: JSON, see profile_json.h. DataError if it is none.
[[nodiscard]] std::string profile_text(const std::string& record);

}  // namespace stoker::job
