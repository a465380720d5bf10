// SPDX-License-Identifier: Apache-2.0
// The folder for files that Stoker can rebuild: indexes of large data folders, and lists of bad images. Used by data
// and tasks. Thread-safe: no state.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace stoker::data {

// $STOKER_CACHE, else $XDG_CACHE_HOME/stoker, else $HOME/.cache/stoker. Empty (no cache) if none of them is an absolute
// path. The folder need not exist.
[[nodiscard]] std::filesystem::path cache_folder();

// XXH3-128 in hexadecimal digits: used for file names in the cache and for their checksums.
[[nodiscard]] std::string hex_hash(std::string_view text);

}  // namespace stoker::data
