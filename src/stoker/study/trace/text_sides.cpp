// SPDX-License-Identifier: Apache-2.0
// Several traces side by side as text: ranks, and two traces of one program.
#include <algorithm>
#include <cmath>

#include "stoker/base/file.h"
#include "stoker/base/fmt.h"
#include "stoker/study/trace/text_parts.h"

namespace stoker::study {

using namespace observe::trace;

std::string time_text(double ns) {
  const char* unit = "s";
  double value = ns * 1e-9;
  if (ns < 1e6) {
    unit = "us";
    value = ns * 1e-3;
  } else if (ns < 1e9) {
    unit = "ms";
    value = ns * 1e-6;
  }
  const int digits = value <= 0 ? 0 : std::clamp(2 - static_cast<int>(std::floor(std::log10(value))), 0, 2);
  return fmt::format("{:.{}f} {}", value, digits, unit);
}
std::string time_text(std::int64_t ns) { return time_text(static_cast<double>(ns)); }

double share(std::int64_t part, std::int64_t whole) {
  return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0;
}
std::string percent(std::int64_t part, std::int64_t whole) {
  return fmt::format("{:5.1f} %", 100 * share(part, whole));
}

std::string fitted(const std::string& name, std::size_t width) {
  const std::string text = printable(name);
  if (text.size() <= width) {
    return text;
  }
  const std::size_t head = (width - 3) * 2 / 3, tail = width - 3 - head;
  return text.substr(0, head) + "..." + text.substr(text.size() - tail);
}

namespace {

std::string row_name(const RankRow& row) {
  return row.rank < 0 ? printable(row.file.substr(row.file.find_last_of("/:") + 1)) : fmt::format("rank {}", row.rank);
}

}  // namespace

std::string ranks_text(const RanksFacts& facts) {
  std::string text = fmt::format(
      "\n{}\n  {:>5} {:>10} {:>8} {:>10} {:>10} {:>14} {:>10}  {}\n",
      std::ranges::any_of(facts.rows, [](const RankRow& row) { return row.rank >= 0; }) ? "ranks" : "traces", "rank",
      "mean step", "busy", "compute", "collective", "exposed of it", "waited", "file");
  for (const RankRow& row : facts.rows) {
    text += fmt::format("  {:>5} {:>10} {:>8} {:>10} {:>10} {:>14} {:>10}  {}\n",
                        row.rank < 0 ? "-" : std::to_string(row.rank), row.step < 0 ? "-" : time_text(row.step),
                        percent(row.busy, row.window), time_text(row.compute), time_text(row.communication),
                        time_text(row.exposed_communication), time_text(row.waited),
                        fitted(row.file.substr(row.file.find_last_of("/:") + 1), 60));
  }
  if (!facts.missing.empty()) {
    text += fmt::format(
        "note: traces of {} rank{} are missing: {}\n", facts.missing.size(), facts.missing.size() == 1 ? "" : "s",
        fmt::join(facts.missing.begin(),
                  facts.missing.begin() + std::min<std::ptrdiff_t>(20, std::ssize(facts.missing)), ", "));
  }
  if (facts.path.length >= 0) {
    text += fmt::format("critical path through the ranks: {}; in collectives {}", time_text(facts.path.length),
                        percent(facts.path.in_collectives, facts.path.length));
    for (std::size_t i = 0; i < facts.rows.size(); ++i) {
      if (facts.path.by_row[i] * 100 >= facts.path.length) {
        text += fmt::format(", {} {}", row_name(facts.rows[i]), percent(facts.path.by_row[i], facts.path.length));
      }
    }
    text += "\n";
  }
  if (facts.straggler >= 0) {
    const RankRow& row = facts.rows[static_cast<std::size_t>(facts.straggler)];
    text += fmt::format("The others wait in collectives for {}.\n", row_name(row));
  }
  return text;
}

namespace {

std::string_view word_of(const Change& change, bool idle) {
  const bool timed = change.word == Change::Word::kFaster || change.word == Change::Word::kSlower;
  return idle && timed ? (change.word == Change::Word::kFaster ? "less" : "more") : change_name(change.word);
}

std::string changes_text(const std::vector<Change>& changes, const std::string& title, std::size_t rows,
                         bool idle = false) {
  std::string text = fmt::format("\n{}\n  {:>9}  {:>9}  {:>11}  change\n", title, "before", "after", "difference");
  std::size_t shown = 0;
  for (const Change& change : changes) {
    if (shown == rows || change.difference() == 0) {
      break;
    }
    ++shown;
    text += fmt::format(
        "  {:>9}  {:>9}  {:>1}{:>10}  {:<7} {}{}\n", change.word == Change::Word::kNew ? "-" : time_text(change.before),
        change.word == Change::Word::kGone ? "-" : time_text(change.after), change.difference() < 0 ? "-" : "+",
        time_text(std::abs(change.difference())), word_of(change, idle), fitted(change.name, 48),
        change.shapes.empty() ? "" : " " + fitted(change.shapes, 40));
  }
  return shown == 0 ? "" : text;
}

}  // namespace

std::string comparison_text(const TraceFacts& before, const TraceFacts& after, const TraceReportOptions& options) {
  const Comparison found = compare(before, after);
  std::string text = "before: " + head_text(before) + "after:  " + head_text(after);
  if (found.per_step) {
    text += fmt::format("\nmean step {} -> {}: {:.2f} times as fast\n", time_text(before.mean_step()),
                        time_text(after.mean_step()), before.mean_step() / after.mean_step());
  } else {
    text += "\nOne of the traces marks no steps: times are of the whole traces.\n";
  }
  for (std::size_t i = 0; i < std::min(before.devices.size(), after.devices.size()); ++i) {
    const DeviceUse &a = before.devices[i].time.steps, &b = after.devices[i].time.steps;
    text += fmt::format("device {}: busy{} ->{}\n", before.devices[i].time.device, percent(a.busy(), a.total()),
                        percent(b.busy(), b.total()));
  }
  const std::string unit = found.per_step ? ", per step" : "";
  text += changes_text(found.idle, "idle time" + unit, options.rows, /*idle=*/true);
  text += changes_text(found.kernels, "work of devices" + unit, options.rows);
  return text + changes_text(found.operators,
                             (found.operators_by_host ? "operators, host time" : "operators, device time") + unit,
                             options.rows);
}

}  // namespace stoker::study
