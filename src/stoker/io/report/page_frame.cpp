// SPDX-License-Identifier: Apache-2.0
#include "stoker/io/report/page_frame.h"

#include <array>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>

#include "stoker/base/error.h"
#include "stoker/base/fmt.h"

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

// Cannot end its script element: escapes the characters that are special in HTML; they occur only in strings.
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

// frame with each {{name}} replaced; inserted text is not searched.
std::string fill(std::string_view frame, std::span<const std::pair<std::string_view, std::string>> parts) {
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
      fail<IoError>("io.page_frame", "the frame has an unknown part \"{}\"", name);
    }
    at = close + kClose.size();
  }
  return result.append(frame.substr(at));
}

}  // namespace

std::string make_page(const PageParts& parts, const nlohmann::ordered_json& data) {
  using namespace page_files;
  std::string scripts = fmt::format("<script>{}</script>", kFrameJs);
  for (const std::string_view each : parts.scripts) {
    scripts += fmt::format("\n<script>{}</script>", each);
  }
  const std::array<std::pair<std::string_view, std::string>, 7> values{{
      {"title", html_text(parts.title)},
      {"kind", html_text(parts.kind)},
      {"verdict", html_text(parts.verdict)},
      {"style", fmt::format("{}{}", kFrameCss, parts.style)},
      {"body", std::string(parts.body)},
      {"data", script_json(data)},
      {"scripts", std::move(scripts)},
  }};
  return fill(kFrameHtml, values);
}

}  // namespace stoker::io
