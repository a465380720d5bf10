// SPDX-License-Identifier: Apache-2.0
#include "stoker/io/report/page.h"

#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "stoker/io/report/fill_page.h"

namespace stoker::io {

std::string page(std::string_view title, std::string_view verdict, const nlohmann::ordered_json& data) {
  using namespace page_files;
  const std::array<std::pair<std::string_view, std::string>, 7> parts{{
      {"title", html_text(title)},
      {"verdict", html_text(verdict)},
      {"style", std::string(kPageCss)},
      {"library", std::string(kDygraphJs)},
      {"charts", std::string(kChartsJs)},
      {"program", std::string(kExhibitsJs) + std::string(kPageJs)},
      {"data", script_json(data)},
  }};
  return fill_page(kPageHtml, parts);
}

}  // namespace stoker::io
