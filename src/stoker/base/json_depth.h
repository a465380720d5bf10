// SPDX-License-Identifier: Apache-2.0
// How deep a JSON text nests. Asked of every text from a file before it becomes a tree: copying, comparing and writing
// a tree calls itself once per level, so a text of a million brackets would overflow the stack. Thread-safe: no state.
#pragma once

#include <string_view>

namespace stoker {

// More levels than any file that Stoker reads has: a tokenizer.json has about ten.
inline constexpr int kMostJsonLevels = 100;

// True if arrays and objects nest deeper than that many levels. Reads the text once and needs no valid JSON.
[[nodiscard]] bool json_nests_deeper(std::string_view text, int levels = kMostJsonLevels);

}  // namespace stoker
