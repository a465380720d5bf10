// SPDX-License-Identifier: Apache-2.0
// A file that grows while others read it: buffers added data for at most a second. Used by LogFile and RecordFile. One
// thread.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "stoker/base/clock.h"
#include "stoker/base/file.h"

namespace stoker::io {

class GrowingFile {
 public:
  // descriptor: open for appending, closed at the end. path: for messages.
  GrowingFile(int descriptor, const std::filesystem::path& path) : descriptor_(descriptor), writer_(descriptor, path) {}
  ~GrowingFile();
  GrowingFile(const GrowingFile&) = delete;
  GrowingFile& operator=(const GrowingFile&) = delete;

  // Adds a piece. Writes to the file if the last write was a second ago or much is buffered, always whole pieces.
  // IoError if the disk refuses. Without memory the piece is not added.
  void add(std::string_view piece);
  // May be called again after an error.
  void flush();

 private:
  int descriptor_;
  FileWriter writer_;
  std::string buffer_;
  double flushed_ = now_s();
};

}  // namespace stoker::io
