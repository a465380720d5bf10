// SPDX-License-Identifier: Apache-2.0
#include "stoker/data/text_files.h"

#include <algorithm>

#include "stoker/base/error.h"
#include "stoker/base/file.h"

namespace stoker::data {
namespace {

namespace fs = std::filesystem;
constexpr std::string_view kWhere = "data.text";
constexpr std::size_t kLargestFile = std::size_t{1} << 36;  // 64 GiB: what is read must fit the memory anyway

struct FoundFiles {
  std::vector<fs::path> text;
  fs::path other;  // the first that is none
};

FoundFiles find_files(const fs::path& folder) {
  FoundFiles found;
  std::error_code error;
  fs::recursive_directory_iterator it(folder, fs::directory_options::follow_directory_symlink, error), end;
  for (; !error && it != end; it.increment(error)) {
    const bool hidden = it->path().filename().native().starts_with('.');
    if (hidden && it->is_directory()) {
      it.disable_recursion_pending();
    } else if (!hidden && !it->is_directory()) {
      if (it->path().extension() == ".txt") {
        found.text.push_back(it->path());
      } else if (found.other.empty()) {
        found.other = it->path();
      }
    }
  }
  if (error) {
    fail<DataError>(kWhere, "{}: cannot be read: {}", printable(folder.native()), error.message());
  }
  std::ranges::sort(found.text, {}, [](const fs::path& path) -> const std::string& { return path.native(); });
  return found;
}

}  // namespace

bool looks_like_text(const fs::path& path) {
  std::error_code error;
  if (!fs::is_directory(path, error)) {
    return path.extension() == ".txt";
  }
  try {
    const FoundFiles found = find_files(path);
    return !found.text.empty() && found.other.empty();
  } catch (const DataError&) {  // whoever opens it says why
    return false;
  }
}

Text read_text_files(const fs::path& path) {
  Text text;
  std::error_code error;
  text.files = fs::is_directory(path, error) ? find_files(path).text : std::vector<fs::path>{path};
  if (text.files.empty()) {
    fail<DataError>(kWhere, "{}: has no file that ends in .txt", printable(path.native()));
  }
  for (const fs::path& file : text.files) {
    if (!text.bytes.empty() && text.bytes.back() != '\n') {
      text.bytes += '\n';
    }
    text.starts.push_back(static_cast<std::int64_t>(text.bytes.size()));
    text.bytes += read_text(file, kLargestFile);
  }
  if (text.bytes.empty()) {
    fail<DataError>(kWhere, "{}: is empty, expected text", printable(path.native()));
  }
  return text;
}

std::size_t whole_characters(std::string_view text, std::size_t wanted) {
  std::size_t at = std::min(wanted, text.size());
  for (int back = 0; back < 4 && at > 0 && at < text.size(); ++back) {
    if ((static_cast<unsigned char>(text[at]) & 0xC0) != 0x80) {  // no continuation byte
      return at;
    }
    --at;
  }
  return std::min(wanted, text.size());  // no UTF-8
}

}  // namespace stoker::data
