// SPDX-License-Identifier: Apache-2.0
#include "stoker/io/report/fill_page.h"

#include <nlohmann/json.hpp>

#include "stoker/base/error.h"

namespace stoker::io {

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

// Escapes the characters that are special in HTML; they occur only in strings.
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

std::string fill_page(std::string_view frame, std::span<const std::pair<std::string_view, std::string>> parts) {
  constexpr std::string_view kOpen = "{{", kClose = "}}";
  std::string result;
  std::size_t at = 0;
  for (std::size_t open = frame.find(kOpen); open != frame.npos; open = frame.find(kOpen, at)) {
    const std::size_t close = frame.find(kClose, open);
    const std::string_view name = frame.substr(open + kOpen.size(), close - open - kOpen.size());
    result += frame.substr(at, open - at);
    bool known = false;
    for (const auto& [key, text] : parts) {
      if (key == name) {
        result += text;
        known = true;
      }
    }
    if (!known || close == frame.npos) {
      fail<IoError>("io.report", "the page has no part \"{}\"", name);
    }
    at = close + kClose.size();
  }
  return result.append(frame.substr(at));
}

}  // namespace stoker::io
