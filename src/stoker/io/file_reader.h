// SPDX-License-Identifier: Apache-2.0
// Reads ranges of a file that may be larger than memory. Used by safetensors and the checkpoint store. One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

namespace stoker::io {

class FileReader {
 public:
  // CheckpointError if the file is missing, unreadable or not a regular file.
  explicit FileReader(const std::filesystem::path& path);
  ~FileReader();
  FileReader(const FileReader&) = delete;
  FileReader& operator=(const FileReader&) = delete;

  [[nodiscard]] std::uint64_t size() const { return size_; }  // bytes at the time of opening
  [[nodiscard]] const std::string& name() const { return name_; }
  // Fills target with the bytes from offset on; CheckpointError if the file is too short.
  void read(std::uint64_t offset, std::span<std::byte> target) const;

 private:
  std::string name_;
  int descriptor_;
  std::uint64_t size_ = 0;
};

}  // namespace stoker::io
