// SPDX-License-Identifier: Apache-2.0
#include "stoker/base/utf8.h"

namespace stoker {
namespace {

struct Form {  // of a character's first byte
  std::size_t bytes;
  char32_t bits;   // of the value that the first byte holds
  char32_t least;  // below it the form is overlong
};

Form form_of(unsigned char first) {
  if (first < 0x80) return {1, first, 0};
  if (first >= 0xC2 && first < 0xE0) return {2, char32_t{first} & 0x1F, 0x80};
  if (first >= 0xE0 && first < 0xF0) return {3, char32_t{first} & 0x0F, 0x800};
  if (first >= 0xF0 && first < 0xF5) return {4, char32_t{first} & 0x07, 0x10000};
  return {0, 0, 0};
}

}  // namespace

CodePoint code_point_at(std::string_view text, std::size_t at) {
  const Form form = form_of(static_cast<unsigned char>(text[at]));
  if (form.bytes == 0 || text.size() - at < form.bytes) {
    return {};
  }
  char32_t value = form.bits;
  for (std::size_t i = 1; i < form.bytes; ++i) {
    const auto next = static_cast<unsigned char>(text[at + i]);
    if ((next & 0xC0) != 0x80) {
      return {};
    }
    value = (value << 6) | (next & 0x3F);
  }
  const bool surrogate = value >= 0xD800 && value < 0xE000;
  return value < form.least || surrogate || value > 0x10FFFF ? CodePoint{} : CodePoint{value, form.bytes};
}

std::size_t first_invalid_utf8(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t bytes = static_cast<unsigned char>(text[at]) < 0x80 ? 1 : code_point_at(text, at).bytes;
    if (bytes == 0) {
      return at;
    }
    at += bytes;
  }
  return std::string_view::npos;
}

std::string utf8_of(char32_t value) {
  const auto tail = [value](int shift) { return static_cast<char>(0x80 | ((value >> shift) & 0x3F)); };
  if (value < 0x80) return {static_cast<char>(value)};
  if (value < 0x800) return {static_cast<char>(0xC0 | (value >> 6)), tail(0)};
  if (value < 0x10000) return {static_cast<char>(0xE0 | (value >> 12)), tail(6), tail(0)};
  return {static_cast<char>(0xF0 | (value >> 18)), tail(12), tail(6), tail(0)};
}

}  // namespace stoker
