// SPDX-License-Identifier: Apache-2.0
// A whole file as memory that is not the process's own: the system reads its pages when they are looked at and drops
// them when it needs room. Used for the index of a folder. Thread-safe: immutable.
#pragma once

#include <filesystem>
#include <memory>
#include <utility>
#include <vector>

#include "stoker/base/file.h"

namespace stoker {

class MappedFile {
 public:
  // Null if it is missing, empty, no regular file, or cannot be mapped. The file must only ever be replaced (by
  // rename), never cut short, while this is there. On a file system of other machines (NFS, SMB, FUSE, Lustre, Ceph) it
  // is read instead: a file that another machine replaces is gone there, mapping and all.
  [[nodiscard]] static std::shared_ptr<const MappedFile> open(const std::filesystem::path& path);
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  [[nodiscard]] Bytes bytes() const { return bytes_; }

 private:
  explicit MappedFile(Bytes mapped) : bytes_(mapped) {}
  explicit MappedFile(std::vector<std::byte> read) : read_(std::move(read)), bytes_(read_) {}
  std::vector<std::byte> read_;  // where it is not mapped
  Bytes bytes_;
};

}  // namespace stoker
