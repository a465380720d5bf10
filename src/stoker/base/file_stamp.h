// SPDX-License-Identifier: Apache-2.0
// Shows that a file or a folder is unchanged without reading it. Used by the index of a folder and by the list of bad
// files. Thread-safe: no state.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

struct stat;

namespace stoker {

struct FileStamp {
  std::uint64_t inode = 0;
  std::int64_t size = 0;  // bytes; of a folder 0
  // Nanoseconds since 1970: of the last change of the content, and of any change, which no program can set back.
  std::int64_t modified = 0, changed = 0;
  bool operator==(const FileStamp&) const = default;
};

[[nodiscard]] FileStamp stamp_from(const struct stat& facts);
// Follows links; empty for a missing path, and for anything that is neither a regular file nor a folder.
[[nodiscard]] std::optional<FileStamp> stamp_of(const std::filesystem::path& path);

// Nanoseconds since 1970, as in files.
[[nodiscard]] std::int64_t file_clock();
// Whether a change after `now` is sure to give another stamp: clocks of file systems may tick only every two seconds,
// so a younger stamp may not show a change.
[[nodiscard]] bool is_settled(const FileStamp& stamp, std::int64_t now);

}  // namespace stoker
