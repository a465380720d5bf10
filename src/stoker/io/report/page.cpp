// SPDX-License-Identifier: Apache-2.0
#include "stoker/io/report/page.h"

#include "stoker/io/report/page_frame.h"

namespace stoker::io {

std::string report_page(std::string_view title, std::string_view verdict, const nlohmann::ordered_json& data) {
  using namespace page_files;
  return make_page({.title = title,
                    .kind = "run report",
                    .verdict = verdict,
                    .body = kPageHtml,
                    .scripts = {kDygraphJs, kChartsJs, kExhibitsJs, kMemoryJs, kMonitorJs, kAnatomyJs, kPageJs}},
                   data);
}

}  // namespace stoker::io
