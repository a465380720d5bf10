// SPDX-License-Identifier: Apache-2.0
#include "stoker/base/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "stoker/base/error.h"

namespace stoker {
namespace {

// statfs(2) and linux/magic.h: NFS, SMB, CIFS, SMB2, FUSE, Lustre, Ceph, 9P, AFS.
constexpr std::array<std::uint32_t, 9> kRemote = {0x6969,     0x517B,     0xFF534D42, 0xFE534D42, 0x65735546,
                                                  0x0BD00BD0, 0x00C36400, 0x01021997, 0x5346414F};

bool is_remote(int file) {
  struct statfs facts {};
  return ::fstatfs(file, &facts) == 0 &&
         std::ranges::find(kRemote, static_cast<std::uint32_t>(facts.f_type)) != kRemote.end();
}

}  // namespace

std::shared_ptr<const MappedFile> MappedFile::open(const std::filesystem::path& path, std::size_t most_read) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // a FIFO must not block us here
  if (file < 0) {
    return nullptr;
  }
  if (is_remote(file)) {
    ::close(file);
    std::vector<std::byte> bytes;
    try {
      read_file(path, bytes, most_read);
    } catch (const DataError&) {
      return nullptr;
    }
    return bytes.empty() ? nullptr : std::shared_ptr<const MappedFile>(new MappedFile(std::move(bytes)));
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

MappedFile::~MappedFile() {
  if (read_.empty()) {
    ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
  }
}

}  // namespace stoker
