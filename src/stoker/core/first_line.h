// SPDX-License-Identifier: Apache-2.0
// The message of an error of any library in one line, for people: torch's own messages end with a call stack. Used
// where such errors become typed ones. Thread-safe: no state.
#pragma once

#include <c10/util/Exception.h>

#include <exception>
#include <string>

namespace stoker::core {

[[nodiscard]] inline std::string first_line(const std::exception& error) {
  const auto* const of_torch = dynamic_cast<const c10::Error*>(&error);
  const std::string text = of_torch != nullptr ? of_torch->what_without_backtrace() : error.what();
  return text.substr(0, text.find('\n'));
}

}  // namespace stoker::core
