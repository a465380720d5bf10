// SPDX-License-Identifier: Apache-2.0
// Shared by the fuzz targets: the function that libFuzzer (preset fuzz) or replay.cpp calls with each input, a check of
// a property, and an input as a file. For one thread.
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

// Ends the process like a crash, so that libFuzzer keeps the input.
inline void expect(bool holds, const char* property) {
  if (!holds) {
    std::fprintf(stderr, "does not hold: %s\n", property);
    std::abort();
  }
}

// A number that depends on every byte of the input. It chooses what a target does with the bytes. FNV-1a.
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
      throw std::runtime_error("cannot create a file in memory");
    }
    path_ = "/proc/self/fd/" + std::to_string(descriptor_);
  }
  ~MemoryFile() { ::close(descriptor_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  // Replaces the whole content.
  const std::filesystem::path& hold(Bytes bytes) {
    const auto size = static_cast<ssize_t>(bytes.size());
    if (::ftruncate(descriptor_, size) != 0 || ::pwrite(descriptor_, bytes.data(), bytes.size(), 0) != size) {
      throw std::runtime_error("cannot write the file in memory");
    }
    return path_;
  }

 private:
  int descriptor_;
  std::filesystem::path path_;
};

}  // namespace stoker::fuzz
