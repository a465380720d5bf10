// SPDX-License-Identifier: Apache-2.0
// What tells that a file or a folder is still the one that was looked at, without reading it. Used by the index of a
// folder and by the list of files found bad. Thread-safe: no state.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

struct stat;

namespace stoker {

struct FileStamp {
  std::uint64_t inode = 0;
  std::int64_t size = 0;  // bytes; of a folder 0
  // Nanoseconds since 1970: of the content, and of anything, which no program can set back.
  std::int64_t modified = 0, changed = 0;
  bool operator==(const FileStamp&) const = default;
};

[[nodiscard]] FileStamp stamp_from(const struct stat& facts);
// Of what a link points to; empty for what is not there, and for what is neither a regular file nor a folder.
[[nodiscard]] std::optional<FileStamp> stamp_of(const std::filesystem::path& path);

// Nanoseconds since 1970, as files have them.
[[nodiscard]] std::int64_t file_clock();
// Whether a change after `now` is sure to show in another stamp: clocks of file systems tick as slowly as each two
// seconds, so that a younger stamp may stay the same through a change.
[[nodiscard]] bool is_settled(const FileStamp& stamp, std::int64_t now);

}  // namespace stoker
