// SPDX-License-Identifier: Apache-2.0
// Integers with thousands separators: 1,692. Used by texts of every room. Thread-safe: no state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace stoker {

inline std::string thousands(std::int64_t value) {
  std::string text = std::to_string(value);
  for (auto at = static_cast<std::ptrdiff_t>(text.size()) - 3; at > (value < 0 ? 1 : 0); at -= 3) {
    text.insert(static_cast<std::size_t>(at), 1, ',');
  }
  return text;
}

}  // namespace stoker
