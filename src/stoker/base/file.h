// SPDX-License-Identifier: Apache-2.0
// Safe files: whole reads with typed errors, and writes that are complete or absent. Used by data, io and job.
// Thread-safe: no state.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace stoker {

using Bytes = std::span<const std::byte>;

inline Bytes as_bytes(std::string_view text) { return std::as_bytes(std::span(text.data(), text.size())); }
inline std::string_view as_text(Bytes bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

// A path as text for a terminal or a log: bytes that are not UTF-8 and control characters become \xNN.
std::string printable(std::string_view text);

// A regular file, open for reading; rejects folders, FIFOs and devices without blocking. DataError if it is missing,
// not a regular file, or longer than limit bytes.
class InputFile {
 public:
  explicit InputFile(const std::filesystem::path& path, std::size_t limit = std::size_t{1} << 32);
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;
  ~InputFile();
  // Reads all of it, once, replacing the content of buffer; less if the file shrinks meanwhile. DataError if that
  // fails.
  void read(std::vector<std::byte>& buffer) const;

 private:
  const std::filesystem::path& path_;
  int descriptor_ = -1;
  std::size_t size_ = 0;
};

// Opens a file and reads it. DataError as InputFile.
void read_file(const std::filesystem::path& path, std::vector<std::byte>& buffer,
               std::size_t limit = std::size_t{1} << 32);
std::string read_text(const std::filesystem::path& path, std::size_t limit = std::size_t{1} << 26);

// A sink for the bytes of one file; write() throws IoError if the write fails.
class FileWriter {
 public:
  explicit FileWriter(int descriptor, std::filesystem::path path) : descriptor_(descriptor), path_(std::move(path)) {}
  void write(Bytes bytes);
  [[nodiscard]] std::size_t written() const { return written_; }

 private:
  int descriptor_;
  std::filesystem::path path_;
  std::size_t written_ = 0;
};

// Temp file beside path, checked writes, fsync, rename, fsync of the folder: after a crash, a kill or a full disk the
// file at path is either the complete old one or the complete new one. IoError otherwise; the temp file is removed.
// Every file of a checkpoint is written this way. A symbolic link stays, and the file behind it is replaced; a device or
// a pipe (/dev/stdout) is written to.
void write_file_atomically(const std::filesystem::path& path, const std::function<void(FileWriter&)>& fill);
void write_file_atomically(const std::filesystem::path& path, std::string_view text);

// Makes a rename or a removal inside folder survive a power loss.
void sync_folder(const std::filesystem::path& folder);

}  // namespace stoker
