// SPDX-License-Identifier: Apache-2.0
// The bodies, styles and scripts of this room's pages, embedded by cmake/embed.cmake. Used by tips/page.cpp,
// inspect/page.cpp and inspect/data_sheet.cpp. Thread-safe: constants.
#pragma once

#include <string_view>

namespace stoker::study::page_files {

extern const std::string_view kTipsHtml, kTipsCss, kTipsJs;
extern const std::string_view kInspectCss, kInspectPartsJs;  // for all inspections
extern const std::string_view kInspectSections, kInspectJs;  // for images
extern const std::string_view kSheetSections, kSheetJs;      // for tables and texts

}  // namespace stoker::study::page_files
