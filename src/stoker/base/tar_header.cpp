// SPDX-License-Identifier: Apache-2.0
#include "stoker/base/tar_header.h"

#include <algorithm>
#include <charconv>

namespace stoker {
namespace {

std::string_view text_field(const TarBlock& block, std::size_t offset, std::size_t length) {
  const std::string_view field(block.data() + offset, length);
  return field.substr(0, field.find('\0'));
}

// GNU format for numbers beyond 8 GiB: base 256, marked by the first bit. Empty beyond 63 bits.
std::optional<std::int64_t> binary_number(std::string_view field) {
  std::uint64_t value = static_cast<unsigned char>(field[0]) & 0x7F;
  for (const char c : field.substr(1)) {
    if (value >> 55 != 0) {
      return std::nullopt;
    }
    value = (value << 8) | static_cast<unsigned char>(c);
  }
  return static_cast<std::int64_t>(value);
}

// Octal digits with optional blanks around them; no digits mean 0.
std::optional<std::int64_t> number_field(const TarBlock& block, std::size_t offset, std::size_t length) {
  std::string_view field(block.data() + offset, length);
  if ((static_cast<unsigned char>(field[0]) & 0x80) != 0) {
    return binary_number(field);
  }
  field.remove_prefix(std::min(field.find_first_not_of(' '), field.size()));
  field = field.substr(0, field.find_first_of(std::string_view(" \0", 2)));
  if (field.empty()) {
    return 0;
  }
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), value, 8);
  return error == std::errc{} && end == field.data() + field.size() && value >= 0 ? std::optional(value) : std::nullopt;
}

bool checksum_is_right(const TarBlock& block) {
  std::int64_t sum = 8 * ' ';  // the checksum field is summed as blanks
  for (std::size_t i = 0; i < block.size(); ++i) {
    sum += i < 148 || i >= 156 ? static_cast<unsigned char>(block[i]) : 0;
  }
  return number_field(block, 148, 8) == sum;
}

// A record is "<length> <key>=<value>\n", with the length of the whole record. Removes one from text; false if damaged.
bool read_pax_record(std::string_view& text, TarExtension& next) {
  std::size_t length = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), length);
  const auto digits = static_cast<std::size_t>(end - text.data());
  if (error != std::errc{} || length <= digits + 1 || length > text.size() || text[digits] != ' ' ||
      text[length - 1] != '\n') {
    return false;
  }
  const std::string_view record = text.substr(digits + 1, length - digits - 2);
  text.remove_prefix(length);
  if (record.starts_with("path=")) {
    next.path = record.substr(5);
  } else if (record.starts_with("size=")) {
    std::int64_t size = 0;
    const char* last = record.data() + record.size();
    const auto parsed = std::from_chars(record.data() + 5, last, size);
    next.size = size;
    return parsed.ec == std::errc{} && parsed.ptr == last && size >= 0;
  }
  return true;
}

}  // namespace

std::optional<TarHeader> parse_tar_header(const TarBlock& block) {
  const std::optional<std::int64_t> size = number_field(block, 124, 12);
  if (!checksum_is_right(block) || !size) {
    return std::nullopt;
  }
  TarHeader header;
  header.size = *size;
  header.type = block[156];
  const bool ustar = text_field(block, 257, 6) == "ustar";  // GNU tar writes "ustar  " and has no prefix
  const std::string_view prefix = ustar ? text_field(block, 345, 155) : "";
  header.path = prefix;
  header.path += prefix.empty() ? "" : "/";
  header.path += text_field(block, 0, 100);
  return header;
}

bool read_tar_extension(char type, std::string_view content, TarExtension& next) {
  if (type == 'L') {
    next.path = content.substr(0, content.find('\0'));
  }
  if (type == 'x') {
    while (!content.empty()) {
      if (!read_pax_record(content, next)) {
        return false;
      }
    }
  }
  return true;  // 'K' names the target of a link; 'g' applies to all members and is not used
}

std::string_view trimmed_path(std::string_view path) {
  while (path.starts_with("./")) {
    path.remove_prefix(2);
    path.remove_prefix(std::min(path.find_first_not_of('/'), path.size()));
  }
  return path;
}

bool climbs_out(std::string_view path) {
  if (path.starts_with('/')) {
    return true;
  }
  while (true) {
    const std::size_t slash = path.find('/');
    if (path.substr(0, slash) == "..") {
      return true;
    }
    if (slash == std::string_view::npos) {
      return false;
    }
    path.remove_prefix(slash + 1);
  }
}

std::string_view compression_of(std::string_view head) {
  return head.starts_with("\x1F\x8B")           ? "gzip"
         : head.starts_with("\x28\xB5\x2F\xFD") ? "zstd"
         : head.starts_with(
               "\xFD"
               "7zXZ")
             ? "xz"
         : head.starts_with("BZh") ? "bzip2"
                                   : "";
}

}  // namespace stoker
