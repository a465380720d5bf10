// SPDX-License-Identifier: Apache-2.0
#include "ask.h"

#include <cstdio>
#include <iostream>

#include "stoker/base/fmt.h"

namespace stoker::app {

bool typed_yes(const std::string& question) {
  fmt::print("{}", question);
  std::fflush(stdout);
  std::string answer;
  std::getline(std::cin, answer);
  return answer == "yes" || answer == "y";
}

}  // namespace stoker::app
