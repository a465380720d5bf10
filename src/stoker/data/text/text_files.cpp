// SPDX-License-Identifier: Apache-2.0
#include "stoker/data/text/text_files.h"

#include <algorithm>
#include <functional>

#include "stoker/base/error.h"
#include "stoker/base/file.h"

namespace stoker::data {
namespace {

namespace fs = std::filesystem;
constexpr std::string_view kWhere = "data.text";
constexpr std::size_t kLargestFile = std::size_t{1} << 36;  // 64 GiB; the text must fit into memory anyway

// Calls take(path, is_text) for each file below folder until it returns false; ignores hidden files and linked folders,
// which may form loops.
void walk(const fs::path& folder, const std::function<bool(const fs::path&, bool)>& take) {
  std::error_code error;
  fs::recursive_directory_iterator it(folder, error), end;
  for (; !error && it != end; it.increment(error)) {
    std::error_code unknown;  // for a broken link, which counts as a file
    const bool hidden = it->path().filename().native().starts_with('.');
    if (it->is_directory(unknown)) {
      if (hidden) {
        it.disable_recursion_pending();
      }
    } else if (!hidden && !take(it->path(), it->path().extension() == ".txt")) {
      return;
    }
  }
  if (error) {
    fail<DataError>(kWhere, "{}: cannot be read: {}", printable(folder.native()), error.message());
  }
}

std::vector<fs::path> text_files(const fs::path& folder) {
  std::vector<fs::path> files;
  walk(folder, [&](const fs::path& file, bool is_text) {
    if (is_text) {
      files.push_back(file);
    }
    return true;
  });
  std::ranges::sort(files, {}, [](const fs::path& file) -> const std::string& { return file.native(); });
  return files;
}

}  // namespace

bool looks_like_text(const fs::path& path) {
  std::error_code error;
  if (!fs::is_directory(path, error)) {
    return path.extension() == ".txt";
  }
  bool some = false, others = false;
  try {
    walk(path, [&](const fs::path&, bool is_text) {
      (is_text ? some : others) = true;
      return !others;
    });
  } catch (const DataError&) {  // opening it reports the reason
    return false;
  }
  return some && !others;
}

Text read_text_files(const fs::path& path) {
  Text text;
  std::error_code error;
  text.files = fs::is_directory(path, error) ? text_files(path) : std::vector<fs::path>{path};
  if (text.files.empty()) {
    fail<DataError>(kWhere, "{}: contains no .txt file", printable(path.native()));
  }
  for (const fs::path& file : text.files) {
    if (!text.bytes.empty() && text.bytes.back() != '\n') {
      text.bytes += '\n';
    }
    text.bytes += read_text(file, kLargestFile);
  }
  if (text.bytes.empty()) {
    fail<DataError>(kWhere, "{}: is empty; expected text", printable(path.native()));
  }
  return text;
}

std::size_t whole_characters(std::string_view text, std::size_t wanted) {
  std::size_t at = std::min(wanted, text.size());
  for (int back = 0; back < 4 && at < text.size(); ++back) {
    if ((static_cast<unsigned char>(text[at]) & 0xC0) != 0x80) {  // not a continuation byte
      return at;
    }
    if (at-- == 0) {
      break;
    }
  }
  return std::min(wanted, text.size());  // not UTF-8
}

}  // namespace stoker::data
