// SPDX-License-Identifier: Apache-2.0
// A word of a command line that people copy into a shell. Thread-safe: no state.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

namespace stoker {

// The text as it is if no shell sees more in it than its characters, else in single quotes.
[[nodiscard]] inline std::string shell_word(std::string_view text) {
  constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-+:@%,=";
  const auto plain = [&](char c) { return static_cast<unsigned char>(c) >= 0x80 || kPlain.find(c) != kPlain.npos; };
  if (!text.empty() && std::ranges::all_of(text, plain)) {
    return std::string(text);
  }
  std::string quoted = "'";
  for (const char c : text) {
    quoted += c == '\'' ? "'\\''" : std::string(1, c);
  }
  return quoted + "'";
}

}  // namespace stoker
