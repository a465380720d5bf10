// SPDX-License-Identifier: Apache-2.0
// Code points of UTF-8 text, strictly (RFC 3629: no overlong forms, no surrogates, nothing beyond U+10FFFF). Used by
// printable() and the tokenizers. Thread-safe: no state.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace stoker {

struct CodePoint {
  char32_t value = 0;
  std::size_t bytes = 0;  // 1 to 4; 0 if no valid character begins here
};

// The character that begins at text[at]; at < text.size().
[[nodiscard]] CodePoint code_point_at(std::string_view text, std::size_t at);

// The offset of the first byte that is not part of a valid character; npos if all is UTF-8.
[[nodiscard]] std::size_t first_invalid_utf8(std::string_view text);

// The 1 to 4 bytes of a code point that is not a surrogate and at most U+10FFFF.
[[nodiscard]] std::string utf8_of(char32_t value);

}  // namespace stoker
