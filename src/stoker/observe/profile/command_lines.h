// SPDX-License-Identifier: Apache-2.0
// The lines that another program prints, within a time. For tools that may be missing, slow or absent, whose result is
// a help and no need. Used by code_places.h. Thread-safe.
#pragma once

#include <string>
#include <vector>

namespace stoker::observe::profile {

// words: the program, found by PATH, and its arguments; no shell sees them. After `seconds` the program is killed, and
// the lines until then count. None if it cannot be started. Its standard input is empty, its errors go nowhere, and it
// does not get DEBUGINFOD_URLS: with that, tools of elfutils and binutils fetch debug files from the network.
[[nodiscard]] std::vector<std::string> command_lines(const std::vector<std::string>& words, double seconds);

}  // namespace stoker::observe::profile
