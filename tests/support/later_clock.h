// SPDX-License-Identifier: Apache-2.0
// For tests of what is kept about files: one that was just written could be written still within a tick of the clock,
// and nothing is kept of it. Thread-safe: no state.
#pragma once

#include <cstdint>

#include "stoker/base/file_stamp.h"

namespace stoker::testing {

// file_clock(), ten seconds on: files just written are old enough.
inline std::int64_t later_clock() { return file_clock() + 10'000'000'000; }

}  // namespace stoker::testing
