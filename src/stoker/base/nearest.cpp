// SPDX-License-Identifier: Apache-2.0
#include "stoker/base/nearest.h"

#include "stoker/base/file.h"
#include "stoker/base/fmt.h"

namespace stoker {

std::string unknown_name(std::string_view what, std::string_view name, std::string_view near, std::string_view rest) {
  return fmt::format("unknown {} \"{}\"; {}{}", what, printable(name),
                     near.empty() ? "" : fmt::format("did you mean \"{}\"? ", printable(near)), rest);
}

std::string unknown_name(std::string_view what, std::string_view name, const std::vector<std::string>& known) {
  return unknown_name(what, name, nearest(name, known), fmt::format("known: {}", fmt::join(known, ", ")));
}

}  // namespace stoker
