// SPDX-License-Identifier: Apache-2.0
// A file that grows while others read it: what is added is held back for a second at most. Under LogFile and
// RecordFile. One thread.
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

  // To the file if the last time was a second ago or much is held back, always up to the end of such a piece. IoError
  // when the disk refuses.
  void add(std::string_view piece);
  void flush();

 private:
  int descriptor_;
  FileWriter writer_;
  std::string buffer_;
  double flushed_ = now_s();
};

}  // namespace stoker::io
