// SPDX-License-Identifier: Apache-2.0
// Where Stoker keeps what it can make again: the indexes of large data folders, and lists of images found bad. Used
// by data and tasks. Thread-safe: no state.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace stoker::data {

// $STOKER_CACHE, else $XDG_CACHE_HOME/stoker, else $HOME/.cache/stoker; empty, for nowhere, if none of them is an
// absolute path. It need not be there.
[[nodiscard]] std::filesystem::path cache_folder();

// XXH3-128 in hexadecimal digits: what files in it are called, and how they check themselves.
[[nodiscard]] std::string hex_hash(std::string_view text);

}  // namespace stoker::data
