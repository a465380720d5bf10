// SPDX-License-Identifier: Apache-2.0
#include "stoker/base/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace stoker {

std::shared_ptr<const MappedFile> MappedFile::open(const std::filesystem::path& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // a FIFO must not block us here
  if (file < 0) {
    return nullptr;
  }
  struct stat facts {};
  void* start = MAP_FAILED;
  if (::fstat(file, &facts) == 0 && S_ISREG(facts.st_mode) && facts.st_size > 0) {
    start = ::mmap(nullptr, static_cast<std::size_t>(facts.st_size), PROT_READ, MAP_SHARED, file, 0);
  }
  ::close(file);
  if (start == MAP_FAILED) {
    return nullptr;
  }
  const Bytes bytes(static_cast<const std::byte*>(start), static_cast<std::size_t>(facts.st_size));
  return std::shared_ptr<const MappedFile>(new MappedFile(bytes));
}

MappedFile::~MappedFile() { ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size()); }

}  // namespace stoker
