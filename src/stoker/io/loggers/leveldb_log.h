// SPDX-License-Identifier: Apache-2.0
// LevelDB's log format, the container of a Weights & Biases run: records in blocks of 32 KiB, each piece with its
// length and checksum. Used by the W&B sink. One thread.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

#include "stoker/io/loggers/growing_file.h"

namespace stoker::io {

// Adds the record's pieces to buffer, and moves `at`, the number of bytes before them in the file. A record that does
// not fit into its block is cut. As in W&B's files the checksum is CRC-32 (of zlib) of the type and the bytes.
void append_pieces(std::string& buffer, std::size_t& at, std::string_view record);

// A new file with W&B's header that grows record by record; written records reach it within a second.
class LevelDbLog {
 public:
  // IoError if path exists or cannot be created.
  explicit LevelDbLog(const std::filesystem::path& path);

  // IoError if the disk refuses.
  void add(std::string_view record);
  void flush() { file_.flush(); }

 private:
  GrowingFile file_;
  std::size_t at_ = 0;
};

}  // namespace stoker::io
