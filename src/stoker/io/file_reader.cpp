// SPDX-License-Identifier: Apache-2.0
#include "stoker/io/file_reader.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "stoker/base/error.h"
#include "stoker/base/file.h"

namespace stoker::io {

FileReader::FileReader(const std::filesystem::path& path)
    : name_(printable(path.native())), descriptor_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
  if (descriptor_ < 0) {
    fail<CheckpointError>("io.file", "{}: cannot be opened: {}", name_, std::strerror(errno));
  }
  struct stat facts {};
  if (::fstat(descriptor_, &facts) != 0 || !S_ISREG(facts.st_mode)) {
    ::close(descriptor_);
    fail<CheckpointError>("io.file", "{}: is not a regular file", name_);
  }
  size_ = static_cast<std::uint64_t>(facts.st_size);
}

FileReader::~FileReader() { ::close(descriptor_); }

void FileReader::read(std::uint64_t offset, std::span<std::byte> target) const {
  constexpr std::size_t kMost = std::size_t{1} << 30;  // Linux reads at most 2^31 - 4096 bytes at once
  while (!target.empty()) {
    const ssize_t got = ::pread(descriptor_, target.data(), std::min(target.size(), kMost), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) {
      continue;
    }
    if (got < 0) {
      fail<CheckpointError>("io.file", "{}: cannot be read at byte {}: {}", name_, offset, std::strerror(errno));
    }
    if (got == 0) {
      fail<CheckpointError>("io.file", "{}: ends at byte {}; expected {} more bytes", name_, offset, target.size());
    }
    offset += static_cast<std::uint64_t>(got);
    target = target.subspan(static_cast<std::size_t>(got));
  }
}

}  // namespace stoker::io
