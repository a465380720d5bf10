// SPDX-License-Identifier: Apache-2.0
// "1 epoch", "3 epochs": a number of things in texts for people. Used by every room. Thread-safe: no state.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace stoker {

// noun: its singular, of a plural with s.
inline std::string counted(std::int64_t number, std::string_view noun) {
  return std::to_string(number) + ' ' + std::string(noun) + (number == 1 ? "" : "s");
}

}  // namespace stoker
