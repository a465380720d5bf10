// SPDX-License-Identifier: Apache-2.0
// Compresses a file that another library could only write plain. Used by Recorder. Thread-safe: no state.
#pragma once

#include <filesystem>

namespace stoker::observe::profile {

// Replaces `plain` by `packed`, which is whole or absent. IoError if one cannot be read or written; `plain` is removed
// in any case.
void gzip_file(const std::filesystem::path& plain, const std::filesystem::path& packed);

}  // namespace stoker::observe::profile
