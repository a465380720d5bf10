// SPDX-License-Identifier: Apache-2.0
// Self-contained pages: frame.html, filled. Used by the pages of the report and of study. Thread-safe: no state.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace stoker::io {

// title, kind and verdict are escaped, data cannot end its script element; the other parts are inserted as they are.
struct PageParts {
  std::string_view title, kind;  // kind: shown beside Stoker's name
  std::string_view verdict;
  std::string_view style = {};                 // after frame.css
  std::string_view body;                       // of <main>
  std::vector<std::string_view> scripts = {};  // after frame.js, each an element of its own
};

[[nodiscard]] std::string make_page(const PageParts& parts, const nlohmann::ordered_json& data);

// The files beside this one and the chart library, embedded by cmake/embed.cmake.
namespace page_files {
extern const std::string_view kFrameHtml, kFrameJs, kFrameCss;  // of every page
// Of the report.
extern const std::string_view kPageHtml, kDygraphJs, kChartsJs, kExhibitsJs, kMemoryJs, kMonitorJs, kAnatomyJs, kPageJs;
}  // namespace page_files

}  // namespace stoker::io
