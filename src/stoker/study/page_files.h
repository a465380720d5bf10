// SPDX-License-Identifier: Apache-2.0
// The bodies, styles and scripts of this room's pages, and a page of docs/, embedded by cmake/embed.cmake. Used by the
// page.cpp of tips, inspect, trace and doctor, and by inspect/data_sheet.cpp. Thread-safe: constants.
#pragma once

#include <string_view>

namespace stoker::study::page_files {

extern const std::string_view kTipsHtml, kTipsCss, kTipsJs;
extern const std::string_view kInspectCss, kInspectPartsJs;  // for all inspections
extern const std::string_view kInspectSections, kInspectJs;  // for images
extern const std::string_view kSheetSections, kSheetJs;      // for tables and texts

extern const std::string_view kTipsTable;  // docs/tips.md

extern const std::string_view kTraceHtml, kTraceCss, kTracePartsJs, kTimeLineJs, kTraceJs;
extern const std::string_view kCompareHtml, kCompareJs;  // two traces

extern const std::string_view kDoctorHtml, kDoctorCss, kDoctorJs;

}  // namespace stoker::study::page_files
