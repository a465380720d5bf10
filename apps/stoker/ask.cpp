// SPDX-License-Identifier: Apache-2.0
#include "ask.h"

#include <iostream>

#include "stoker/base/fmt.h"

namespace stoker::app {

bool typed_yes(const std::string& question, std::FILE* to) {
  fmt::print(to, "{}", question);
  std::fflush(to);
  std::string answer;
  std::getline(std::cin, answer);
  return answer == "yes" || answer == "y";
}

}  // namespace stoker::app
