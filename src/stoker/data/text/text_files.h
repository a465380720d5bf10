// SPDX-License-Identifier: Apache-2.0
// Text for a language model: one file, or the concatenation of all text files below a folder. Used by the
// language-model task. Thread-safe: no state.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace stoker::data {

struct Text {
  std::string bytes;
  std::vector<std::filesystem::path> files;  // in bytewise order of their paths relative to the folder
};

// Whether a path looks like text: a .txt file, or a folder with only .txt files below it (ignoring hidden files and
// linked folders).
[[nodiscard]] bool looks_like_text(const std::filesystem::path& path);

// A file with any name, or the .txt files below a folder without hidden files and linked folders. Adds a line end
// between files if the first has none. DataError if it is missing, unreadable or empty.
[[nodiscard]] Text read_text_files(const std::filesystem::path& path);

// The largest offset up to wanted that does not cut a UTF-8 character.
[[nodiscard]] std::size_t whole_characters(std::string_view text, std::size_t wanted);

}  // namespace stoker::data
