// SPDX-License-Identifier: Apache-2.0
#include "stoker/parallel/process_stat.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <sstream>

namespace stoker::parallel {

std::vector<std::string> process_stat(const std::string& process) {
  std::ifstream file("/proc/" + process + "/stat");
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  std::istringstream fields(text.substr(std::min(text.rfind(')') + 1, text.size())));  // a name may have spaces
  return {std::istream_iterator<std::string>(fields), std::istream_iterator<std::string>()};
}

}  // namespace stoker::parallel
