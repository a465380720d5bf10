// SPDX-License-Identifier: Apache-2.0
// "1 epoch", "3 epochs": a number with a noun, in texts for people. Used by every room. Thread-safe: no state.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace stoker {

// noun: the singular of a noun with a plural in s.
inline std::string counted(std::int64_t number, std::string_view noun) {
  return std::to_string(number) + ' ' + std::string(noun) + (number == 1 ? "" : "s");
}

}  // namespace stoker
