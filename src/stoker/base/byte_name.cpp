// SPDX-License-Identifier: Apache-2.0
#include "stoker/base/byte_name.h"

#include <charconv>

#include "stoker/base/file.h"
#include "stoker/base/fmt.h"

namespace stoker {
namespace {

constexpr std::string_view kHex = "hex:";

}  // namespace

std::string byte_name_to_text(std::string_view name) {
  if (printable(name) == name && !name.starts_with(kHex)) {
    return std::string(name);
  }
  std::string text(kHex);
  for (const char c : name) {
    text += fmt::format("{:02x}", static_cast<unsigned char>(c));
  }
  return text;
}

std::optional<std::string> byte_name_from_text(std::string_view text) {
  if (!text.starts_with(kHex)) {
    return std::string(text);
  }
  if (text.size() % 2 != 0) {  // two digits per byte
    return std::nullopt;
  }
  std::string name;
  for (std::size_t i = kHex.size(); i < text.size(); i += 2) {
    unsigned char byte = 0;
    const char* end = text.data() + i + 2;
    if (const auto [stop, error] = std::from_chars(text.data() + i, end, byte, 16);
        error != std::errc() || stop != end) {
      return std::nullopt;
    }
    name += static_cast<char>(byte);
  }
  return name;
}

}  // namespace stoker
