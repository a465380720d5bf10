// SPDX-License-Identifier: Apache-2.0
#include "stoker/study/doctor/tips.h"

#include "stoker/base/fmt.h"
#include "stoker/study/page_files.h"

namespace stoker::study {
namespace {

constexpr std::size_t kCells = 7;

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(' ');
  return begin == std::string_view::npos ? "" : text.substr(begin, text.find_last_not_of(' ') - begin + 1);
}

// The cells of "| a | b |"; of another line none.
std::vector<std::string_view> cells_of(std::string_view line) {
  std::vector<std::string_view> cells;
  for (std::size_t end = line.find('|'); end != std::string_view::npos; end = line.find('|')) {
    cells.push_back(trimmed(line.substr(0, end)));
    line.remove_prefix(end + 1);
  }
  return cells;
}

std::vector<KnownTip> read_table(std::string_view page) {
  std::vector<KnownTip> tips;
  while (!page.empty()) {
    const std::size_t end = std::min(page.find('\n'), page.size());
    const std::string_view line = page.substr(0, end);
    page.remove_prefix(std::min(end + 1, page.size()));
    std::vector<std::string_view> cells = cells_of(line);
    if (cells.size() == kCells + 1 && !cells[1].empty() && cells[1].find_first_not_of("0123456789") == cells[1].npos) {
      const auto cell = [&](std::size_t i) { return std::string(cells[i + 1]); };
      tips.push_back({cell(0), cell(1), cell(2), cell(3), cell(4), cell(5), cell(6)});
    }
  }
  return tips;
}

}  // namespace

const std::vector<KnownTip>& doctor_tips() {
  static const std::vector<KnownTip> kTips = read_table(page_files::kTipsTable);
  return kTips;
}

std::string tips_text() {
  std::string text;
  for (const KnownTip& tip : doctor_tips()) {
    text += fmt::format("{:>2} {}\n", tip.number, tip.tip);
    if (!tip.care.empty()) {
      text += fmt::format("   mind:      {}\n", tip.care);
    }
    if (!tip.option.empty()) {
      text += fmt::format("   in Stoker: {}\n", tip.option);
    }
    text += fmt::format("   rule:      {}\n", tip.rule);
    if (!tip.figure.empty()) {
      text += fmt::format("   measured:  {} ({})\n", tip.figure, tip.bench);
    }
  }
  return text;
}

}  // namespace stoker::study
