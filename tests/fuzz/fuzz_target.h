// SPDX-License-Identifier: Apache-2.0
// What the fuzz targets share: the function that libFuzzer (preset fuzz) or replay.cpp calls with each input, a
// property that must hold, and an input as a file. One thread.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>

#include "stoker/base/file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace stoker::fuzz {

// Ends the process as a crash does, so that libFuzzer keeps the input.
inline void expect(bool holds, const char* property) {
  if (!holds) {
    std::fprintf(stderr, "does not hold: %s\n", property);
    std::abort();
  }
}

// A number that each byte of the input changes: what is asked of it, beside the bytes themselves. FNV-1a.
inline std::uint64_t hash_of(Bytes input) {
  std::uint64_t value = 0xCBF29CE484222325;
  for (const std::byte byte : input) {
    value = (value ^ std::to_integer<std::uint64_t>(byte)) * 0x100000001B3;
  }
  return value ^ (value >> 29);
}

// A file without a folder, for readers that open theirs by path.
class MemoryFile {
 public:
  MemoryFile() : descriptor_(::memfd_create("input", MFD_CLOEXEC)) {
    if (descriptor_ < 0) {
      throw std::runtime_error("no file in memory can be made");
    }
    path_ = "/proc/self/fd/" + std::to_string(descriptor_);
  }
  ~MemoryFile() { ::close(descriptor_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  // Its whole content from now on.
  const std::filesystem::path& hold(Bytes bytes) {
    const auto size = static_cast<ssize_t>(bytes.size());
    if (::ftruncate(descriptor_, size) != 0 || ::pwrite(descriptor_, bytes.data(), bytes.size(), 0) != size) {
      throw std::runtime_error("the file in memory cannot be written");
    }
    return path_;
  }

 private:
  int descriptor_;
  std::filesystem::path path_;
};

}  // namespace stoker::fuzz
