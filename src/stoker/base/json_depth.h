// SPDX-License-Identifier: Apache-2.0
// The nesting depth of a JSON text. Checked for every text from a file before it is parsed: copying, comparing and
// writing a tree is recursive, so a text of a million brackets would overflow the stack. Thread-safe: no state.
#pragma once

#include <string_view>

namespace stoker {

// More levels than in any file that Stoker reads: a tokenizer.json has about ten.
inline constexpr int kMostJsonLevels = 100;

// True if arrays and objects nest deeper than this many levels. Reads the text once; it need not be valid JSON.
[[nodiscard]] bool json_nests_deeper(std::string_view text, int levels = kMostJsonLevels);

}  // namespace stoker
