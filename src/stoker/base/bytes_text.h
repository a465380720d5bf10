// SPDX-License-Identifier: Apache-2.0
// "1.50 GiB", "12 KiB": an amount of memory in texts for people. Used by every room. Thread-safe: no state.
#pragma once

#include <cstdint>
#include <string>

#include "stoker/base/fmt.h"

namespace stoker {

// In the largest unit of 1024 that leaves at least 1, with three digits.
inline std::string bytes_text(std::int64_t bytes) {
  const auto exact = static_cast<double>(bytes);
  const double size = exact < 0 ? -exact : exact;
  constexpr const char* kUnits[] = {"KiB", "MiB", "GiB", "TiB"};
  if (size < 1024) {
    return fmt::format("{} B", bytes);
  }
  double unit = 1024;
  int name = 0;
  while (name < 3 && size >= 999.5 * unit) {
    unit *= 1024;
    ++name;
  }
  const double value = exact / unit;
  const double digits = size / unit;
  return fmt::format("{:.{}f} {}", value, digits < 9.995 ? 2 : digits < 99.95 ? 1 : 0, kUnits[name]);
}

}  // namespace stoker
