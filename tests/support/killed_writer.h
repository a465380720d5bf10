// SPDX-License-Identifier: Apache-2.0
// For tests that run tests/data/batch_writer as a child process, kill it, and read what it has written. The program is
// in the folder of the test program. For one thread.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "app/stoker_process.h"
#include "support/matrix_batches.h"

namespace stoker::testing {

inline std::filesystem::path batch_writer() {
  return std::filesystem::read_symlink("/proc/self/exe").parent_path() / "batch_writer";
}

struct WriterTask {
  std::filesystem::path data, cache;
  int calls = 1;
  core::Position start = {};
  MatrixWay way = {};

  [[nodiscard]] Words words() const {
    return {data.native(),
            cache.native(),
            std::to_string(calls),
            std::to_string(start.epoch),
            std::to_string(start.step),
            std::to_string(way.threads),
            std::to_string(way.ranks),
            way.plain ? "1" : "0"};
  }
};

// A kill may cut the last line, which then counts as not written.
inline std::vector<std::string> whole_lines(const std::string& text) {
  std::vector<std::string> lines;
  std::size_t from = 0;
  for (std::size_t end = text.find('\n'); end != std::string::npos; end = text.find('\n', from)) {
    lines.push_back(text.substr(from, end - from));
    from = end + 1;
  }
  return lines;
}

}  // namespace stoker::testing
