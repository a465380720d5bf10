// SPDX-License-Identifier: Apache-2.0
#include "stoker/io/report/page.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "stoker/base/fmt.h"
#include "stoker/io/report/fill_page.h"
#include "stoker/study/page_files.h"
#include "stoker/study/tips/report.h"

namespace stoker::study {
namespace {

// A summary in one or two sentences.
std::string verdict(const TipsTable& table) {
  const auto with = [&](Word word) {
    std::vector<std::string> cells;
    for (const TipCell& cell : table.cells) {
      if (cell.word == word) {
        cells.push_back(fmt::format("{} on {}", cell.tip->id, cell.model));
      }
    }
    return cells;
  };
  const std::size_t helps = with(Word::kHelps).size(), memory = with(Word::kHelpsMemory).size();
  const std::vector<std::string> hurts = with(Word::kHurts);
  std::string text =
      fmt::format("{} of {} comparisons save time, {} more save only memory. ", helps,
                  std::ranges::count_if(table.cells, [](const TipCell& cell) { return cell.note.empty(); }), memory);
  return text + (hurts.empty() ? "No tip costs time on this machine."
                               : fmt::format("Slower on this machine: {}.", fmt::join(hurts, ", ")));
}

}  // namespace

std::string tips_page(const TipsTable& table) {
  using namespace page_files;
  const std::array<std::pair<std::string_view, std::string>, 4> parts{{
      {"verdict", io::html_text(verdict(table))},
      {"style", std::string(io::page_files::kPageCss) + std::string(kTipsCss)},
      {"program", std::string(kTipsJs)},
      {"data", io::script_json(nlohmann::ordered_json::parse(tips_json(table)))},
  }};
  return io::fill_page(kTipsHtml, parts);
}

}  // namespace stoker::study
