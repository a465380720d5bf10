// SPDX-License-Identifier: Apache-2.0
// Text that fits a column of a table for people. Used by pages in the terminal. Thread-safe.
#pragma once

#include <string>

namespace stoker {

// The first `width` characters; a text that is longer ends with "…" instead. UTF-8 characters stay whole.
[[nodiscard]] std::string cut_text(const std::string& text, std::size_t width);

}  // namespace stoker
