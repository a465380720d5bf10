// SPDX-License-Identifier: Apache-2.0
// Bytes as text for data URIs (RFC 4648, section 4, with padding). Used by the pages of io and study. Thread-safe: no
// state.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

#include "stoker/base/file.h"

namespace stoker {

inline std::string base64(Bytes bytes) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string result;
  result.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::size_t count = std::min<std::size_t>(3, bytes.size() - i);
    std::uint32_t word = 0;
    for (std::size_t k = 0; k < 3; ++k) {
      word = word << 8 | (k < count ? std::to_integer<std::uint32_t>(bytes[i + k]) : 0);
    }
    for (std::size_t k = 0; k < 4; ++k) {
      result += k <= count ? kDigits[word >> (18 - 6 * k) & 63] : '=';
    }
  }
  return result;
}

}  // namespace stoker
