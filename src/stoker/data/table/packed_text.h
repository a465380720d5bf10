// SPDX-License-Identifier: Apache-2.0
// The text of a file that may be compressed. Used by read_table. Functions without state.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>

namespace stoker::data {

// The content of the file, decompressed if its first bytes are gzip or Zstandard, for any file name; several members or
// frames are concatenated. limit: maximum bytes of the text.
// DataError for an unreadable, damaged or truncated file; for other compressed or binary formats, with their name and
// what to do; and for more than limit or most_unpacked() bytes, so that a small file cannot fill the memory.
[[nodiscard]] std::string read_packed_text(const std::filesystem::path& file, std::size_t limit);

// Maximum decompressed bytes for a file of that size: 256 times (more than text compresses by), at least 256 MiB.
[[nodiscard]] std::size_t most_unpacked(std::size_t packed);

}  // namespace stoker::data
