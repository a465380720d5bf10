// SPDX-License-Identifier: Apache-2.0
// Where Stoker keeps what it can make again: the indexes of large data folders, and lists of pictures found bad. Used
// by data and tasks. Thread-safe: no state.
#pragma once

#include <filesystem>

namespace stoker::data {

// $STOKER_CACHE, else $XDG_CACHE_HOME/stoker, else $HOME/.cache/stoker; empty, for nowhere, if none of them is an
// absolute path. It need not be there.
[[nodiscard]] std::filesystem::path cache_folder();

}  // namespace stoker::data
