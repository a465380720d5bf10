// SPDX-License-Identifier: Apache-2.0
#include "stoker/job/step_chart.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "stoker/base/bytes_text.h"
#include "stoker/base/file.h"

namespace stoker::job {
namespace {

constexpr std::size_t kColumns = 60, kRows = 8;
constexpr std::array kLying = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉", "█"};
constexpr std::array kStanding = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};

// The highest value of each column.
std::vector<std::int64_t> columns_of(const std::vector<std::int64_t>& line) {
  std::vector<std::int64_t> columns;
  for (std::size_t i = 0; i < kColumns; ++i) {
    const std::size_t from = i * line.size() / kColumns, to = std::max(from + 1, (i + 1) * line.size() / kColumns);
    columns.push_back(*std::max_element(line.begin() + static_cast<std::ptrdiff_t>(from),
                                        line.begin() + static_cast<std::ptrdiff_t>(std::min(to, line.size()))));
  }
  return columns;
}

// Names from left to right below their places; what finds no room goes to the next line.
std::string names(const std::vector<ChartMark>& marks, std::size_t margin) {
  std::vector<std::string> lines;
  for (const ChartMark& mark : marks) {
    const std::string text = "^" + mark.name;
    const auto place = static_cast<std::size_t>(std::clamp(mark.at, 0.0, 1.0) * static_cast<double>(kColumns));
    auto line =
        std::ranges::find_if(lines, [&](const std::string& each) { return each.size() < place + (place == 0); });
    if (line == lines.end()) {
      lines.emplace_back();
      line = lines.end() - 1;
    }
    line->append(place - std::min(place, line->size()), ' ').append(text);
  }
  std::string text;
  for (const std::string& line : lines) {
    text += std::string(margin, ' ') + line + "\n";
  }
  return text;
}

}  // namespace

std::string bar_text(double share, std::size_t columns) {
  const auto least = share > 0 ? std::size_t{1} : std::size_t{0};
  const double wanted = std::clamp(share, 0.0, 1.0) * static_cast<double>(8 * columns);
  const std::size_t eighths = std::max(least, static_cast<std::size_t>(std::llround(wanted)));
  std::string text;
  for (std::size_t i = 0; i < eighths / 8; ++i) {
    text += kLying[8];
  }
  return text + kLying[eighths % 8];
}

std::vector<ChartMark> chart_marks(const nlohmann::ordered_json& marks) {
  constexpr std::size_t kMost = 8;
  std::vector<ChartMark> shown;
  for (const auto& each : marks) {
    const std::string name = each.value("name", std::string());
    if (name != "start" && name != "end" && shown.size() < kMost) {
      shown.push_back({printable(name), each.value("at", 0.0)});
    }
  }
  return shown;
}

std::string step_chart(const std::vector<std::int64_t>& line, const std::vector<ChartMark>& marks) {
  if (line.empty()) {
    return "";
  }
  const std::vector<std::int64_t> columns = columns_of(line);
  const auto [lowest, highest] = std::ranges::minmax(columns);
  const std::int64_t base = 2 * lowest > highest ? lowest - (highest - lowest) / 8 : 0;
  const double unit = std::max(1.0, static_cast<double>(highest - base)) / (8 * kRows);
  std::string text = fmt::format("the step, allocation by allocation{}\n",
                                 base > 0 ? fmt::format(" (the axis begins at {})", bytes_text(base)) : "");
  for (std::size_t row = kRows; row-- > 0;) {
    std::string drawn;
    for (const std::int64_t value : columns) {
      const double eighths = static_cast<double>(value - base) / unit - static_cast<double>(8 * row);
      drawn += kStanding[static_cast<std::size_t>(std::clamp<long long>(std::llround(eighths), 0, 8))];
    }
    const std::string label = row == kRows - 1 ? bytes_text(highest) : row == 0 ? bytes_text(base) : "";
    text += fmt::format("{:>10} |{}\n", label, drawn);
  }
  return text + names(marks, 12);
}

}  // namespace stoker::job
