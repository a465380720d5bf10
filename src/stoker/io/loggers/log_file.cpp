// SPDX-License-Identifier: Apache-2.0
#include "stoker/io/loggers/log_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>

#include "stoker/base/error.h"

namespace stoker::io {
namespace {

// Bytes up to and including the last line end.
std::uintmax_t whole_lines(const std::filesystem::path& path) {
  std::uintmax_t bytes = 0;
  each_line(path, [&](std::string_view line) {
    bytes += line.size() + 1;
    return true;
  });
  return bytes;
}

int open_to_append(const std::filesystem::path& path) {
  const std::string name = printable(path.native());
  const int descriptor = ::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0644);
  if (descriptor < 0) {
    fail<IoError>("io.log", "{}: cannot be opened for writing: {}", name, std::strerror(errno));
  }
  if (std::filesystem::is_regular_file(path)) {
    const std::uintmax_t keep = whole_lines(path);
    if (keep != std::filesystem::file_size(path) && ::ftruncate(descriptor, static_cast<off_t>(keep)) != 0) {
      ::close(descriptor);
      fail<IoError>("io.log", "{}: an incomplete last line cannot be removed: {}", name, std::strerror(errno));
    }
  }
  return descriptor;
}

}  // namespace

LogFile::LogFile(const std::filesystem::path& path) : file_(open_to_append(path), path) {}

void LogFile::line(std::string_view text) { file_.add(std::string(text) + '\n'); }

void each_line(const std::filesystem::path& path, const std::function<bool(std::string_view)>& use) {
  if (!std::filesystem::is_regular_file(path)) {  // a device or a FIFO may never end
    return;
  }
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    fail<DataError>("io.log", "{}: cannot be opened", printable(path.native()));
  }
  std::string line;
  while (std::getline(file, line) && !file.eof() && use(line)) {  // eof: an incomplete last line
  }
  if (file.bad()) {
    fail<DataError>("io.log", "{}: cannot be read", printable(path.native()));
  }
}

}  // namespace stoker::io
