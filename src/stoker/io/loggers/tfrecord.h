// SPDX-License-Identifier: Apache-2.0
// TFRecord framing, the container of TensorBoard's event files: each record has its length and checksums, so that a
// reader of a growing file stops at an incomplete record. Used by the TensorBoard sink. One thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "stoker/io/loggers/growing_file.h"

namespace stoker::io {

// CRC-32C (RFC 3720, appendix B.4).
[[nodiscard]] std::uint32_t crc32c(std::string_view bytes);

// Adds one framed record to buffer: length (8 bytes, little endian), checksum of these 8, record, checksum of the
// record. Both checksums are masked as the format requires.
void append_record(std::string& buffer, std::string_view record);

// A new file that grows record by record while others read it; written records reach it within a second.
class RecordFile {
 public:
  // IoError if path exists or cannot be created.
  explicit RecordFile(const std::filesystem::path& path);

  // IoError if the disk refuses.
  void add(std::string_view record);
  void flush() { file_.flush(); }

 private:
  GrowingFile file_;
};

}  // namespace stoker::io
