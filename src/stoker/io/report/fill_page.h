// SPDX-License-Identifier: Apache-2.0
// Pages that need nothing else: a frame with {{name}} in it, and what is put there. Used by the report's page and by
// study's. Thread-safe: no state.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace stoker::io {

// Text as HTML shows it.
[[nodiscard]] std::string html_text(std::string_view text);

// JSON in which nothing can end the script element that it stands in.
[[nodiscard]] std::string script_json(const nlohmann::ordered_json& data);

// frame with each {{name}} replaced; what is put in is not looked at. IoError for a name that is not among the parts.
[[nodiscard]] std::string fill_page(std::string_view frame,
                                    std::span<const std::pair<std::string_view, std::string>> parts);

}  // namespace stoker::io
