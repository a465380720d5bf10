// SPDX-License-Identifier: Apache-2.0
// The page of the report: page.html with styles, scripts, the chart library and the data of one or several runs, so
// that it is self-contained. Used by the report. Thread-safe: no state.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace stoker::io {

// title and verdict are inserted as text, data as JSON that cannot end its script element.
[[nodiscard]] std::string page(std::string_view title, std::string_view verdict, const nlohmann::ordered_json& data);

// The files beside this one and the chart library, embedded by cmake/embed.cmake.
namespace page_files {
extern const std::string_view kPageHtml, kPageCss, kDygraphJs, kChartsJs, kExhibitsJs, kPageJs;
}

}  // namespace stoker::io
