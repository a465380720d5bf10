// SPDX-License-Identifier: Apache-2.0
#include "stoker/base/utc.h"

#include <ctime>

namespace stoker {

std::string utc_now(const char* format) {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  char text[64];
  return {text, std::strftime(text, sizeof text, format, &parts)};
}

}  // namespace stoker
