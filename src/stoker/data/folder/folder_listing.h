// SPDX-License-Identifier: Apache-2.0
// Lists one folder, without its subfolders; follows links. Used by the walk through a data folder, and by the index to
// detect changes. Thread-safe: no state.
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
  kImage = 'p',       // a file without a name extension whose first bytes are an image
  kBrokenLink = 'l',  // target missing, or a loop
  kSpecial = 's',     // FIFO, device, socket
};

struct FolderEntry {
  std::string name;  // bytes
  EntryKind kind = EntryKind::kFile;
};

struct FolderListing {
  std::vector<FolderEntry> entries;  // sorted by name
  // Whether every change of the listing also changes the folder's stamp: no links except to folders that are walked,
  // and no file whose content was checked.
  bool steady = true;
  std::error_code error;  // the folder could not be read completely

  // XXH3-128 of names and kinds.
  [[nodiscard]] std::array<std::uint64_t, 2> hash() const;
};

// Folders that the walk does not enter.
[[nodiscard]] bool is_hidden_folder(std::string_view name);
// The extension of the file name without its dot, in lower case; empty if there is none.
[[nodiscard]] std::string ending_of(std::string_view path);

[[nodiscard]] FolderListing list_folder(const std::filesystem::path& folder);

}  // namespace stoker::data
