// SPDX-License-Identifier: Apache-2.0
// The report's page: page.html with its styles, scripts, the chart library and one run's or several runs' data written
// into it, so that it needs nothing else. Used by the report. Thread-safe: no state.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace stoker::io {

// title and verdict stand in the page as text, data as JSON in which nothing can end the script element.
[[nodiscard]] std::string page(std::string_view title, std::string_view verdict, const nlohmann::ordered_json& data);

// The files beside this one and the chart library, embedded by cmake/embed.cmake.
namespace page_files {
extern const std::string_view kPageHtml, kPageCss, kDygraphJs, kChartsJs, kExhibitsJs, kPageJs;
}

}  // namespace stoker::io
