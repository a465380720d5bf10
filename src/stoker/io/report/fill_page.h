// SPDX-License-Identifier: Apache-2.0
// Self-contained pages: a frame with {{name}} placeholders and the parts to insert. Used by the pages of the report and
// of study. Thread-safe: no state.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace stoker::io {

// Text escaped for HTML.
[[nodiscard]] std::string html_text(std::string_view text);

// JSON that cannot end its script element.
[[nodiscard]] std::string script_json(const nlohmann::ordered_json& data);

// frame with each {{name}} replaced; inserted text is not searched. IoError for a name that is not in parts.
[[nodiscard]] std::string fill_page(std::string_view frame,
                                    std::span<const std::pair<std::string_view, std::string>> parts);

}  // namespace stoker::io
