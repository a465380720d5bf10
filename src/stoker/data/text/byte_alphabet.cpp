// SPDX-License-Identifier: Apache-2.0
#include "stoker/data/text/byte_alphabet.h"

#include <array>

#include "stoker/base/utf8.h"

namespace stoker::data {
namespace {

struct Alphabet {
  Alphabet() {
    bytes.fill(-1);
    char32_t next = 0x100;
    for (int byte = 0; byte < 256; ++byte) {
      const bool printable = (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte != 0xAD);
      const char32_t character = printable ? static_cast<char32_t>(byte) : next++;
      characters[static_cast<std::size_t>(byte)] = character;
      bytes[character] = byte;
    }
  }
  std::array<char32_t, 256> characters{};
  std::array<int, 0x144> bytes{};  // 256 bytes; 68 of them are spelled from U+0100 on
};

const Alphabet& alphabet() {
  static const Alphabet made;
  return made;
}

}  // namespace

std::optional<std::string> bytes_of_spelling(std::string_view spelling) {
  std::string bytes;
  for (std::size_t at = 0; at < spelling.size();) {
    const CodePoint next = code_point_at(spelling, at);
    if (next.bytes == 0 || next.value >= alphabet().bytes.size() || alphabet().bytes[next.value] < 0) {
      return std::nullopt;
    }
    bytes += static_cast<char>(alphabet().bytes[next.value]);
    at += next.bytes;
  }
  return bytes;
}

std::string spelling_of(unsigned char byte) { return utf8_of(alphabet().characters[byte]); }

}  // namespace stoker::data
