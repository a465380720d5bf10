// SPDX-License-Identifier: Apache-2.0
#include "stoker/tasks/named_file.h"

namespace stoker::tasks {

std::filesystem::path whole_path(const std::filesystem::path& named, const std::filesystem::path& data) {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::path beside = fs::absolute(data).parent_path() / named;  // named itself if it is absolute
  const bool is_beside = !fs::exists(named, error) && fs::exists(beside, error);
  return (is_beside ? beside : fs::absolute(named)).lexically_normal();
}

}  // namespace stoker::tasks
