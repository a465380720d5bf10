// SPDX-License-Identifier: Apache-2.0
// The text of a file that may be compressed. Used by read_table. Functions without state.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>

namespace stoker::data {

// The content of the file, unpacked if it begins as gzip or Zstandard does, whatever its name says; several members or
// frames follow each other. limit: bytes of the text.
// DataError for a file that cannot be read, damaged or cut off, for another packed or binary format, by its name and
// with what to do, and for more than limit or, so that a small file cannot fill the memory, most_unpacked() bytes.
[[nodiscard]] std::string read_packed_text(const std::filesystem::path& file, std::size_t limit);

// Bytes that so large a packed file may hold: 256 times as many, more than text packs by, and at least 256 MiB.
[[nodiscard]] std::size_t most_unpacked(std::size_t packed);

}  // namespace stoker::data
