// SPDX-License-Identifier: Apache-2.0
// A question in the terminal before something happens that cannot be taken back. Used by `stoker ps` and
// `stoker doctor`.
#pragma once

#include <cstdio>
#include <string>

namespace stoker::app {

inline constexpr int kRefused = 130;  // as of every command that was stopped and leaves nothing

// Whether "yes" or "y" is typed. to: stderr where standard output is for results.
[[nodiscard]] bool typed_yes(const std::string& question, std::FILE* to);

}  // namespace stoker::app
