// SPDX-License-Identifier: Apache-2.0
// Replaces a folder by a finished one, so that one of the two always exists and is complete. Used by the checkpoint
// store. One thread and one process at a time.
#pragma once

#include <filesystem>

namespace stoker::io {

// The names used during the replacement, all in the same folder.
struct SwapPlaces {
  std::filesystem::path target;    // opened by readers
  std::filesystem::path fresh;     // being written; after an exchange, the old folder before its removal
  std::filesystem::path survivor;  // the old folder between two renames, if the file system cannot exchange
};
[[nodiscard]] SwapPlaces swap_places(const std::filesystem::path& folder, const std::string& name);

// fresh becomes target, and the old target is removed. Atomic with renameat2(RENAME_EXCHANGE). If the file system lacks
// it, or can_exchange is false: two renames, with the old folder as survivor in between. IoError: nothing was removed;
// the old folder is target, fresh or survivor, and target, if it exists, is complete.
void swap_in(const SwapPlaces& places, bool can_exchange = true);

// Cleans up after a killed or failed save: renames a survivor back, and removes fresh once target is safe. IoError.
void recover(const SwapPlaces& places);

}  // namespace stoker::io
