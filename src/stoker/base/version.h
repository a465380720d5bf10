// SPDX-License-Identifier: Apache-2.0
// The version of this Stoker; CHANGELOG.md says what is in it.
#pragma once

#include <string_view>

namespace stoker {

inline constexpr std::string_view kVersion = "0.2.0";

}  // namespace stoker
