// SPDX-License-Identifier: Apache-2.0
// The name that a person most likely meant: for error messages about unknown keys, models and optimizers. Thread-safe.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace stoker {

// The known name with the smallest edit distance, the first of equals; empty if none is similar: at most half of the
// characters of the name may differ, or two, and one must stay.
[[nodiscard]] std::string near_name(std::string_view name, const std::vector<std::string>& known);

// unknown option "bacth"; did you mean "batch"? <rest>. Without the question if `near` is empty.
[[nodiscard]] std::string unknown_name(std::string_view what, std::string_view name, std::string_view near,
                                       std::string_view rest);
// The same with the near_name() of the known names.
[[nodiscard]] std::string unknown_name(std::string_view what, std::string_view name,
                                       const std::vector<std::string>& known, std::string_view rest);
// unknown model "rensnet18"; did you mean "resnet18"? known: cnn, resnet18
[[nodiscard]] std::string unknown_name(std::string_view what, std::string_view name,
                                       const std::vector<std::string>& known);

}  // namespace stoker
