// SPDX-License-Identifier: Apache-2.0
// A whole file as mapped memory: the system reads its pages on access and drops them when it needs memory. Used for the
// index of a folder and for lists of JPEG rows. Thread-safe: immutable.
#pragma once

#include <filesystem>
#include <memory>
#include <utility>
#include <vector>

#include "stoker/base/file.h"

namespace stoker {

class MappedFile {
 public:
  // Null if it is missing, empty, not a regular file, or cannot be mapped. While this object exists, the file must only
  // be replaced (by rename), never truncated. On a network file system (NFS, SMB, FUSE, Lustre, Ceph) it is read
  // instead: a file that another machine replaces disappears there together with its mapping. most_read: in bytes; null
  // if such a file is longer.
  [[nodiscard]] static std::shared_ptr<const MappedFile> open(const std::filesystem::path& path,
                                                              std::size_t most_read = std::size_t{1} << 32);
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  [[nodiscard]] Bytes bytes() const { return bytes_; }

 private:
  explicit MappedFile(Bytes mapped) : bytes_(mapped) {}
  explicit MappedFile(std::vector<std::byte> read) : read_(std::move(read)), bytes_(read_) {}
  std::vector<std::byte> read_;  // if it is not mapped
  Bytes bytes_;
};

}  // namespace stoker
