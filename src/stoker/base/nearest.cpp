// SPDX-License-Identifier: Apache-2.0
#include "stoker/base/nearest.h"

#include "stoker/base/file.h"
#include "stoker/base/fmt.h"

namespace stoker {

std::string unknown_name(std::string_view what, std::string_view name, const std::vector<std::string>& known) {
  return fmt::format("there is no {} \"{}\"; did you mean \"{}\"? known: {}", what, printable(name),
                     nearest(name, known), fmt::join(known, ", "));
}

}  // namespace stoker
