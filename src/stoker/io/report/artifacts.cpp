// SPDX-License-Identifier: Apache-2.0
#include "stoker/io/report/artifacts.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string_view>
#include <tuple>

#include "stoker/base/base64.h"
#include "stoker/base/error.h"
#include "stoker/base/file.h"
#include "stoker/io/report/run_log.h"

namespace stoker::io {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr std::size_t kMostFiles = 200;
constexpr std::size_t kImageBudget = 900'000;  // characters of base64 in the page
constexpr std::size_t kTextBudget = 500'000;   // characters of everything else
constexpr std::size_t kMostRows = 1'000;       // per table
constexpr std::size_t kMostClasses = 1'000;    // per matrix
constexpr std::size_t kMostCells = 20'000;     // nonzero, per matrix

// The image type according to the first bytes; empty if it is not an image.
std::string_view image_type(Bytes bytes) {
  const std::string_view text = as_text(bytes);
  return text.starts_with("\x89PNG\r\n\x1a\n") ? "image/png" : text.starts_with("\xff\xd8\xff") ? "image/jpeg" : "";
}

// Number of characters, with <, > and & counted as escapes.
std::size_t size_in_page(const Json& thing) {
  const std::string text = thing.dump(-1, ' ', false, Json::error_handler_t::replace);
  const auto escapes = std::ranges::count_if(text, [](char c) { return c == '<' || c == '>' || c == '&'; });
  return text.size() + 5 * static_cast<std::size_t>(escapes);
}

class Shelf {
 public:
  Shelf(const fs::path& folder, std::vector<std::string>& unread) : folder_(folder), unread_(unread) {}

  void put(const fs::path& file) {
    const std::string name = "artifacts/" + printable(file.filename().native());
    try {
      Json thing = parse_any_json(read_text(file));
      const std::string kind = thing.is_object() && thing.contains("kind") && thing["kind"].is_string()
                                   ? thing["kind"].get<std::string>()
                                   : "";
      const bool shown = kind == "table"     ? table(thing)
                         : kind == "matrix"  ? matrix(thing)
                         : kind == "gallery" ? gallery(thing)
                         : kind == "text"    ? text(thing)
                         : kind == "memory"  ? memory(thing)
                                             : false;
      if (!shown) {
        unread_.push_back(name + ": is not a table, matrix, gallery, text or memory record, or is still being written");
        return;
      }
      thing["file"] = name;
      if (kind == "text") {
        texts_.push_back(std::move(thing));
      } else {
        add(std::move(thing));
      }
    } catch (const Error& error) {
      unread_.emplace_back(error.what());
    }
  }
  // The newest samples, which have the last names, are the most important.
  Json take() {
    for (auto text = texts_.rbegin(); text != texts_.rend(); ++text) {
      add(std::move(*text));
    }
    return std::move(things_);
  }

 private:
  void add(Json thing) {
    std::size_t size = size_in_page(thing);
    if (thing["kind"] == "gallery") {
      for (const Json& item : thing["items"]) {
        size -= item["image"].get_ref<const std::string&>().size();  // has its own budget
      }
    }
    if (size > text_left_) {
      unread_.push_back(fmt::format("{}: has {} characters, but the page has only room for {} more",
                                    thing["file"].get<std::string>(), size, text_left_));
      return;
    }
    text_left_ -= size;
    things_.push_back(std::move(thing));
  }

  static bool array_at(const Json& json, const char* key) { return json.contains(key) && json[key].is_array(); }

  static bool table(Json& thing) {
    if (!array_at(thing, "columns") || !array_at(thing, "rows")) {
      return false;
    }
    Json& rows = thing["rows"];
    if (!std::ranges::all_of(rows, [](const Json& row) { return row.is_array(); })) {
      return false;
    }
    if (rows.size() > kMostRows) {
      thing["left_out"] = fmt::format("showing {} of {} rows", kMostRows, rows.size());
      rows.erase(rows.begin() + kMostRows, rows.end());
    }
    return true;
  }

  // values becomes cells: [row, column, value] for every nonzero value; only the largest if there are too many.
  static bool matrix(Json& thing) {
    if (!array_at(thing, "labels") || !array_at(thing, "values")) {
      return false;
    }
    const std::size_t classes = thing["labels"].size();
    if (classes > kMostClasses) {
      return false;
    }
    std::vector<std::tuple<double, std::size_t, std::size_t>> cells;
    for (std::size_t row = 0; row < std::min(classes, thing["values"].size()); ++row) {
      const Json& values = thing["values"][row];
      for (std::size_t column = 0; values.is_array() && column < std::min(classes, values.size()); ++column) {
        if (values[column].is_number() && values[column].get<double>() != 0) {
          cells.emplace_back(-values[column].get<double>(), row, column);
        }
      }
    }
    std::ranges::sort(cells);
    if (cells.size() > kMostCells) {
      thing["left_out"] = fmt::format("the {} largest of {} cells are shown", kMostCells, cells.size());
      cells.resize(kMostCells);
    }
    Json sparse = Json::array();
    for (const auto& [value, row, column] : cells) {
      const bool whole = std::abs(value) < 1e15 && std::floor(value) == value;  // 3 and not 3.0
      sparse.push_back({row, column, whole ? Json(static_cast<std::int64_t>(-value)) : Json(-value)});
    }
    thing.erase("values");
    thing["cells"] = std::move(sparse);
    return true;
  }

  // Of a recorded step: marks, categories, the time line and the largest tensors.
  static bool memory(const Json& thing) {
    return array_at(thing, "line") && array_at(thing, "categories") && array_at(thing, "marks") &&
           array_at(thing, "blocks") && thing.contains("peak") && thing["peak"].is_number();
  }

  static bool text(const Json& thing) { return thing.contains("text") && thing["text"].is_string(); }

  // A data: URI; empty (and the budget unchanged) if the file is not a supported image.
  std::string image(const Json& item) {
    const std::string name =
        item.contains("image") && item["image"].is_string() ? item["image"].get<std::string>() : "";
    if (name.empty() || name.find('/') != name.npos || image_left_ == 0) {
      return "";
    }
    std::vector<std::byte> bytes;
    try {
      read_file(folder_ / name, bytes, kImageBudget);
    } catch (const DataError&) {
      return "";
    }
    const std::string_view type = image_type(bytes);
    const std::size_t size = (bytes.size() + 2) / 3 * 4;
    if (type.empty() || size > image_left_) {
      return "";
    }
    image_left_ -= size;
    return fmt::format("data:{};base64,{}", type, base64(bytes));
  }

  bool gallery(Json& thing) {
    if (!array_at(thing, "items")) {
      return false;
    }
    Json items = Json::array();
    for (Json& item : thing["items"]) {
      std::string uri = item.is_object() ? image(item) : "";
      if (!uri.empty()) {
        item["image"] = std::move(uri);
        items.push_back(std::move(item));
      }
    }
    if (items.size() < thing["items"].size()) {
      thing["left_out"] = fmt::format(
          "showing {} of {} images; the others do not fit into the page or are missing in "
          "artifacts/",
          items.size(), thing["items"].size());
    }
    thing["items"] = std::move(items);
    return true;
  }

  fs::path folder_;
  std::vector<std::string>& unread_;
  Json things_ = Json::array();
  std::vector<Json> texts_;
  std::size_t image_left_ = kImageBudget, text_left_ = kTextBudget;
};

}  // namespace

nlohmann::ordered_json read_artifacts(const std::filesystem::path& folder, std::vector<std::string>& unread) {
  std::vector<fs::path> files;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    if (it->path().extension() == ".json" && !it->path().filename().native().starts_with('.')) {
      files.push_back(it->path());
    }
  }
  std::ranges::sort(files);
  if (files.size() > kMostFiles) {
    unread.push_back(fmt::format("artifacts: showing {} of {} files", kMostFiles, files.size()));
    files.resize(kMostFiles);
  }
  Shelf shelf(folder, unread);
  for (const fs::path& file : files) {
    shelf.put(file);
  }
  return shelf.take();
}

}  // namespace stoker::io
