// SPDX-License-Identifier: Apache-2.0
// Text for a language model: one file, or all the text files below a folder, one after the other. Used by the
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

// Whether a path looks like text: a file whose name ends in .txt, or a folder that has no other files below it (hidden
// ones and linked folders aside).
[[nodiscard]] bool looks_like_text(const std::filesystem::path& path);

// A file whatever its name, or the .txt files below a folder but for hidden ones and linked folders; a line end is put
// between files where the first lacks one. DataError for what is missing, cannot be read, or is empty.
[[nodiscard]] Text read_text_files(const std::filesystem::path& path);

// The largest offset up to wanted at which no UTF-8 character is cut.
[[nodiscard]] std::size_t whole_characters(std::string_view text, std::size_t wanted);

}  // namespace stoker::data
