// SPDX-License-Identifier: Apache-2.0
// A text file that grows line by line while others read it: what a kill left of a line is cut off when it is opened,
// what is written reaches the file within a second. Used by the CSV and JSONL sinks. One thread.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include "stoker/base/clock.h"
#include "stoker/base/file.h"

namespace stoker::io {

class LogFile {
 public:
  // Opens for appending; IoError if that cannot be done.
  explicit LogFile(const std::filesystem::path& path);
  ~LogFile();
  LogFile(const LogFile&) = delete;
  LogFile& operator=(const LogFile&) = delete;

  // Adds text and a line end; to disk if the last time was a second ago. IoError when the disk refuses.
  void line(std::string_view text);
  void flush();

 private:
  std::filesystem::path path_;
  int descriptor_;
  FileWriter writer_;
  std::string buffer_;
  double flushed_ = now_s();
};

// Calls use with each whole line of a file, without its end; stops where use returns false. No regular file is no line.
// DataError if the file cannot be read.
void each_line(const std::filesystem::path& path, const std::function<bool(std::string_view)>& use);

}  // namespace stoker::io
