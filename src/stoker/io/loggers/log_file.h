// SPDX-License-Identifier: Apache-2.0
// A text file that grows line by line while others read it. Opening removes an incomplete last line of a killed run;
// written lines reach the file within a second. Used by the CSV and JSONL sinks. One thread.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include "stoker/io/loggers/growing_file.h"

namespace stoker::io {

class LogFile {
 public:
  // Opens for appending; IoError if that fails.
  explicit LogFile(const std::filesystem::path& path);

  // Adds text and a line end. IoError if the disk refuses.
  void line(std::string_view text);
  void flush() { file_.flush(); }

 private:
  GrowingFile file_;
};

// Calls use with each complete line of a file, without its end; stops if use returns false. Anything but a regular file
// has no lines. DataError if the file cannot be read.
void each_line(const std::filesystem::path& path, const std::function<bool(std::string_view)>& use);

}  // namespace stoker::io
