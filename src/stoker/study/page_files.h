// SPDX-License-Identifier: Apache-2.0
// The frames, styles and scripts of this room's pages: the files beside this one, embedded by cmake/embed.cmake.
// Used by tips_page.cpp, inspect_page.cpp and data_sheet.cpp. Thread-safe: constants.
#pragma once

#include <string_view>

namespace stoker::study::page_files {

extern const std::string_view kTipsHtml, kTipsCss, kTipsJs;
extern const std::string_view kInspectHtml, kInspectCss, kInspectPartsJs;  // of all inspections
extern const std::string_view kInspectSections, kInspectJs;                // of images
extern const std::string_view kSheetSections, kSheetJs;                    // of tables and texts

}  // namespace stoker::study::page_files
