// SPDX-License-Identifier: Apache-2.0
// The 512-byte headers of tar files and the extended headers between them, as values. Used by data::TarFile and
// observe::trace::TarMembers. Format: POSIX.1-2017, pax, "ustar Interchange Format" and "pax Extended Header"; GNU
// tar manual, "Basic Tar Format". Thread-safe: no state.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace stoker {

inline constexpr std::int64_t kTarBlock = 512;  // bytes; everything is padded to this size
using TarBlock = std::array<char, kTarBlock>;

struct TarHeader {
  std::string path;       // prefix and name, without leading "./"
  std::int64_t size = 0;  // bytes
  char type = '0';
  // A regular file: not a folder, link or device.
  [[nodiscard]] bool is_file() const { return type == '0' || type == '\0' || type == '7'; }
  // Not a member but information about the next one: GNU long name or link, pax.
  [[nodiscard]] bool is_extension() const { return type == 'L' || type == 'K' || type == 'x' || type == 'g'; }
};

// Empty if the checksum or a number is wrong.
[[nodiscard]] std::optional<TarHeader> parse_tar_header(const TarBlock& block);

// Values of extended headers for the next member.
struct TarExtension {
  std::optional<std::string> path;
  std::optional<std::int64_t> size;
};

// Adds the values of an extended header of that type (TarHeader::type). False if it is damaged.
[[nodiscard]] bool read_tar_extension(char type, std::string_view content, TarExtension& next);

// Without a leading "./".
[[nodiscard]] std::string_view trimmed_path(std::string_view path);
// True for a path that would leave the folder of extraction.
[[nodiscard]] bool climbs_out(std::string_view path);
// "gzip", "zstd", "xz", "bzip2" by the first bytes, or empty.
[[nodiscard]] std::string_view compression_of(std::string_view head);

}  // namespace stoker
