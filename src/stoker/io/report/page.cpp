// SPDX-License-Identifier: Apache-2.0
#include "stoker/io/report/page.h"

#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "stoker/base/error.h"

namespace stoker::io {
namespace {

std::string html_text(std::string_view text) {
  std::string result;
  for (const char c : text) {
    switch (c) {
      case '<': result += "&lt;"; break;
      case '>': result += "&gt;"; break;
      case '&': result += "&amp;"; break;
      case '"': result += "&quot;"; break;
      default: result += c;
    }
  }
  return result;
}

// JSON in which the characters that HTML looks at are escapes: they occur in strings alone.
std::string script_json(const nlohmann::ordered_json& data) {
  using Json = nlohmann::ordered_json;
  std::string result;
  for (const char c : data.dump(-1, ' ', false, Json::error_handler_t::replace)) {
    switch (c) {
      case '<': result += "\\u003c"; break;
      case '>': result += "\\u003e"; break;
      case '&': result += "\\u0026"; break;
      default: result += c;
    }
  }
  return result;
}

}  // namespace

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
  constexpr std::string_view kOpen = "{{", kClose = "}}";  // {{title}} in page.html; what is put in is not looked at
  std::string result;
  std::size_t at = 0;
  for (std::size_t open = kPageHtml.find(kOpen); open != kPageHtml.npos; open = kPageHtml.find(kOpen, at)) {
    const std::size_t close = kPageHtml.find(kClose, open);
    const std::string_view name = kPageHtml.substr(open + kOpen.size(), close - open - kOpen.size());
    result += kPageHtml.substr(at, open - at);
    bool known = false;
    for (const auto& [key, text] : parts) {
      if (key == name) {
        result += text;
        known = true;
      }
    }
    if (!known || close == kPageHtml.npos) {
      fail<IoError>("io.report", "page.html: there is no part \"{}\"", name);
    }
    at = close + kClose.size();
  }
  return result.append(kPageHtml.substr(at));
}

}  // namespace stoker::io
