// SPDX-License-Identifier: Apache-2.0
// Who runs where: rank, node, device, cores and threads of each rank, for `stoker plan`. Thread-safe: no state.
#pragma once

#include <string>

#include "stoker/job/setup.h"

namespace stoker::job {

// A line per rank below one of headings; empty with one rank. A collective call.
[[nodiscard]] std::string rank_places(const Setup& setup);

}  // namespace stoker::job
