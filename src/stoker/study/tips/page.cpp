// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <nlohmann/json.hpp>

#include "stoker/base/fmt.h"
#include "stoker/io/report/page_frame.h"
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
  const std::string text = verdict(table);
  return io::make_page({.title = "What helps on this machine",
                        .kind = "bench tips",
                        .verdict = text,
                        .style = kTipsCss,
                        .body = kTipsHtml,
                        .scripts = {kTipsJs}},
                       nlohmann::ordered_json::parse(tips_json(table)));
}

}  // namespace stoker::study
