// SPDX-License-Identifier: Apache-2.0
// Checks the output files of commands before the work starts.
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "commands.h"
#include "stoker/base/error.h"
#include "stoker/base/file.h"

namespace stoker::app {

void check_target(const char* where, const std::string& file) {
  namespace fs = std::filesystem;
  const fs::path path(file), folder = path.has_parent_path() ? path.parent_path() : ".";
  std::error_code unknown;
  if (fs::is_directory(path, unknown)) {
    fail<IoError>(where, "{} is a folder; give a file name", printable(file));
  }
  if (fs::exists(path, unknown) && !fs::is_regular_file(path, unknown)) {  // /dev/stdout: nothing is created beside it
    if (::access(path.c_str(), W_OK) != 0) {
      fail<IoError>(where, "{} cannot be written: {}", printable(file), std::strerror(errno));
    }
    return;
  }
  if (!fs::is_directory(folder, unknown)) {
    fail<IoError>(where, "{} cannot be written: folder {} does not exist; create it first", printable(file),
                  printable(folder.native()));
  }
  if (::access(folder.c_str(), W_OK | X_OK) != 0) {
    fail<IoError>(where, "{} cannot be written: {}: {}", printable(file), printable(folder.native()),
                  std::strerror(errno));
  }
}

}  // namespace stoker::app
