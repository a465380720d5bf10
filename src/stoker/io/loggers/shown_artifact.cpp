// SPDX-License-Identifier: Apache-2.0
#include "stoker/io/loggers/shown_artifact.h"

#include <nlohmann/json.hpp>

#include "stoker/base/error.h"
#include "stoker/base/file.h"

namespace stoker::io {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr std::string_view kWhere = "io.artifact";
constexpr std::size_t kMostImages = 16;

// The size is in the first chunk, which is always IHDR.
Png read_png(const fs::path& file) {
  Png png{read_text(file), 0, 0};
  const auto big_endian = [&](std::size_t at) {
    std::uint32_t value = 0;
    for (std::size_t i = at; i < at + 4; ++i) {
      value = value << 8 | static_cast<unsigned char>(png.bytes[i]);
    }
    return value;
  };
  if (png.bytes.size() < 24 || !png.bytes.starts_with("\x89PNG\r\n\x1a\n")) {
    fail<DataError>(kWhere, "{}: expected a PNG image, but its first bytes differ", printable(file.native()));
  }
  png.width = big_endian(16);
  png.height = big_endian(20);
  return png;
}

// "Samples at step 500" is a point of the series "Samples".
std::string without_step(std::string title) {
  constexpr std::string_view kStep = " at step ";
  const std::size_t at = title.rfind(kStep);
  if (at != std::string::npos && title.find_first_not_of("0123456789", at + kStep.size()) == std::string::npos) {
    title.resize(at);
  }
  return title;
}

// An indented block, which Markdown shows unchanged.
std::string as_block(const std::string& text) {
  std::string block = "    ";
  for (const char c : text) {
    block += c;
    if (c == '\n') {
      block += "    ";
    }
  }
  return block;
}

void add_gallery(ShownArtifact& shown, const Json& items, const fs::path& folder) {
  for (const Json& item : items) {
    if (shown.images.size() == kMostImages) {
      break;
    }
    std::string line = markdown(item.value("caption", ""));
    if (item.contains("good")) {
      line += item["good"].get<bool>() ? " \u2713" : " \u2717";
    }
    try {
      shown.images.push_back(read_png(folder / item.at("image").get<std::string>()));
    } catch (const DataError& error) {
      line += " (not shown: " + markdown(error.what()) + ')';
    }
    shown.captions += "1. " + line + '\n';
  }
}

}  // namespace

std::string markdown(std::string_view text) {
  std::string result;
  for (const char c : text) {
    switch (c) {
      case '<': result += "&lt;"; break;
      case '&': result += "&amp;"; break;
      case '\n': result += ' '; break;
      case '\\':
      case '`':
      case '*':
      case '_':
      case '[':
      case ']': result += '\\'; [[fallthrough]];
      default: result += c;
    }
  }
  return result;
}

ShownArtifact read_artifact(const fs::path& file, const std::string& name) {
  ShownArtifact shown{printable(name), {}, {}, {}};
  if (file.extension() == ".png") {
    shown.images.push_back(read_png(file));
    return shown;
  }
  if (file.extension() != ".json") {
    return shown;
  }
  try {
    const Json json = Json::parse(read_text(file));
    const auto kind = json.at("kind").get<std::string>();
    shown.title = without_step(json.value("title", shown.title));
    if (kind == "gallery") {
      add_gallery(shown, json.at("items"), file.parent_path());
    } else if (kind == "text") {
      shown.text = as_block(json.at("text").get<std::string>());
    }
  } catch (const Json::exception& error) {
    fail<DataError>(kWhere, "{}: is not an artifact as described in docs/formats.md: {}", printable(file.native()),
                    printable(error.what()));
  }
  return shown;
}

}  // namespace stoker::io
