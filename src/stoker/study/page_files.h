// SPDX-License-Identifier: Apache-2.0
// The frames, styles and scripts of this room's pages: the files beside this one, embedded by cmake/embed.cmake.
// Used by tips_page.cpp and inspect_page.cpp. Thread-safe: constants.
#pragma once

#include <string_view>

namespace stoker::study::page_files {

extern const std::string_view kTipsHtml, kTipsCss, kTipsJs;
extern const std::string_view kInspectHtml, kInspectCss, kInspectJs;

}  // namespace stoker::study::page_files
