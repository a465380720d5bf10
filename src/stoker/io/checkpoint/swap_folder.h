// SPDX-License-Identifier: Apache-2.0
// Puts a finished folder in the place of an older one so that one of the two is always there, whole. Used by the
// checkpoint store. One thread and one process at a time.
#pragma once

#include <filesystem>

namespace stoker::io {

// The names that belong to one place while it is replaced; all in the same folder.
struct SwapPlaces {
  std::filesystem::path target;    // what readers open
  std::filesystem::path fresh;     // being written; after an exchange, the old one on its way out
  std::filesystem::path survivor;  // the old one between two renames, where the file system cannot exchange
};
[[nodiscard]] SwapPlaces swap_places(const std::filesystem::path& folder, const std::string& name);

// fresh becomes target and the old target is removed. Atomic by renameat2(RENAME_EXCHANGE); where the file system lacks
// that, or can_exchange is false, two renames with the old one as survivor in between. IoError: nothing was removed.
// The old one is target, fresh or survivor, and target, if it is there, is whole.
void swap_in(const SwapPlaces& places, bool can_exchange = true);

// Clears what a killed or failed save left: puts a survivor back, removes fresh, once target is there for good.
// IoError.
void recover(const SwapPlaces& places);

}  // namespace stoker::io
