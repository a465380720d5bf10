// SPDX-License-Identifier: Apache-2.0
// What lies right in one folder, links followed. Used by the walk through a data folder and by the index, which asks
// whether it is still the same. Thread-safe: no state.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace stoker::data {

enum class EntryKind : char {
  kFolder = 'd',
  kFile = 'f',
  kImage = 'p',       // a file whose name has no ending; it was looked into
  kBrokenLink = 'l',  // to nothing, or in a circle
  kSpecial = 's',     // FIFO, device, socket
};

struct FolderEntry {
  std::string name;  // bytes
  EntryKind kind = EntryKind::kFile;
};

struct FolderListing {
  std::vector<FolderEntry> entries;  // sorted by name
  // Whether it can become another one only by a change of the folder's own stamp: no links but to folders that are
  // walked into, and no file that was looked into.
  bool steady = true;
  std::error_code error;  // it could not be read to its end

  // XXH3-128 of names and kinds.
  [[nodiscard]] std::array<std::uint64_t, 2> hash() const;
};

// Folders that a walk does not enter.
[[nodiscard]] bool is_hidden_folder(std::string_view name);
// What follows the last dot of a path's last part, in small letters; empty if there is none.
[[nodiscard]] std::string ending_of(std::string_view path);

[[nodiscard]] FolderListing list_folder(const std::filesystem::path& folder);

}  // namespace stoker::data
