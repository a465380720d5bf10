// SPDX-License-Identifier: Apache-2.0
// For tests of caches about files. A file that was just written could change again within the same tick of the clock,
// so nothing is cached about it. Thread-safe: no state.
#pragma once

#include <cstdint>

#include "stoker/base/file_stamp.h"

namespace stoker::testing {

// file_clock() plus ten seconds: files that were just written are old enough.
inline std::int64_t later_clock() { return file_clock() + 10'000'000'000; }

}  // namespace stoker::testing
