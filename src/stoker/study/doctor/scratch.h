// SPDX-License-Identifier: Apache-2.0
// A folder of our own for temporary files, gone at the end. Used by watch_script and watch_process. One thread.
#pragma once

#include <filesystem>

namespace stoker::study {

class Scratch {
 public:
  Scratch();  // IoError
  ~Scratch();
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace stoker::study
