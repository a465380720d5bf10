// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>
#include <utility>

#include "stoker/base/file.h"
#include "stoker/base/fmt.h"
#include "stoker/base/thousands.h"
#include "stoker/base/utc.h"
#include "stoker/base/version.h"
#include "stoker/study/inspect/parts.h"
#include "stoker/study/inspect/report.h"

namespace stoker::study {
namespace {

constexpr std::size_t kAllClasses = 20, kSomeClasses = 5;  // lines of a full table; at each end of a shortened one

std::string class_line(const InspectReport& report, std::size_t label) {
  std::string line = "  ";
  for (const SplitCount& split : report.figures.splits) {
    line += fmt::format("{:>10}", thousands(split.by_class[label]));
  }
  return line + "  " + printable(report.found.folder.classes[label]) + "\n";
}

std::string classes_text(const InspectReport& report) {
  const std::vector<SplitCount>& splits = report.figures.splits;
  std::string text = "\n  ", images = "  ", bad = "  ";
  bool any_bad = false;
  for (const SplitCount& split : splits) {
    text += fmt::format("{:>10}", split.name);
    images += fmt::format("{:>10}", thousands(split.images));
    bad += fmt::format("{:>10}", thousands(split.bad));
    any_bad = any_bad || split.bad > 0;
  }
  text += "\n" + images + "  images\n" + (any_bad ? bad + "  bad\n" : "");
  std::vector<std::size_t> order(report.found.folder.classes.size());
  std::iota(order.begin(), order.end(), 0);
  const auto size = [&](std::size_t label) { return splits.empty() ? 0 : splits.front().by_class[label]; };
  std::ranges::stable_sort(order, std::greater(), size);
  const bool all = order.size() <= kAllClasses;
  for (std::size_t i = 0; i < (all ? order.size() : kSomeClasses); ++i) {
    text += class_line(report, order[i]);
  }
  if (!all) {
    text += fmt::format("  {:>10}  {} more classes\n", "...", order.size() - 2 * kSomeClasses);
    for (std::size_t i = order.size() - kSomeClasses; i < order.size(); ++i) {
      text += class_line(report, order[i]);
    }
  }
  return text;
}

template <typename Key>
std::string counts(const std::map<Key, std::int64_t>& all) {
  std::vector<std::pair<std::int64_t, std::string>> sorted;
  for (const auto& [key, count] : all) {
    sorted.emplace_back(count, fmt::format("{}", key));
  }
  std::ranges::stable_sort(sorted, std::greater(), [](const auto& each) { return each.first; });
  std::string text;
  for (const auto& [count, key] : sorted) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", key, thousands(count));
  }
  return text;
}

std::string sizes_text(const InspectFigures& figures) {
  std::string text =
      fmt::format("\n  {:<8}{:>10}{:>10}{:>10}{:>10}{:>10}\n", "", "least", "5 %", "median", "95 %", "most");
  const auto line = [&](const char* name, const Distribution& values, int digits, double unit) {
    text += fmt::format("  {:<8}", name);
    for (const double value : {values.least, values.low, values.median, values.high, values.most}) {
      text += fmt::format("{:>10.{}f}", value / unit, digits);
    }
    text += "\n";
  };
  line("width", figures.width, 0, 1);
  line("height", figures.height, 0, 1);
  line("aspect", figures.aspect, 2, 1);
  line("kB", figures.file_bytes, 1, 1000);
  return text;
}

std::string numbers(const std::vector<double>& values) {
  std::string text;
  for (const double value : values) {
    text += fmt::format("{}{:.4f}", text.empty() ? "" : ", ", value);
  }
  return "[" + text + "]";
}

std::string kinds_text(const InspectReport& report) {
  const InspectFigures& figures = report.figures;
  if (figures.good == 0) {
    return "";
  }
  std::string text = sizes_text(figures) + "\n";
  text += wrapped("  ", "formats: " + counts(figures.formats) + "; colours: " + counts(figures.modes), 2);
  text += fmt::format("  mean={} std={}\n", numbers(figures.mean), numbers(figures.deviation));
  return text + fmt::format("  over all {} pixels, values 0 to 1, {}\n", thousands(report.found.sums.pixels),
                            figures.grey ? "grey" : "red, green, blue");
}

}  // namespace

InspectReport::InspectReport(Inspection inspection)
    : found(std::move(inspection)),
      figures(figures_of(found)),
      findings(findings_of(found, figures)),
      stoker(kVersion),
      date(utc_now("%Y-%m-%dT%H:%M:%SZ")) {}

std::string inspect_verdict(const InspectReport& report) {
  const auto looked = static_cast<std::int64_t>(report.found.images.size());
  return verdict_of(report.findings, fmt::format("{} image{}", thousands(looked), looked == 1 ? "" : "s"));
}

std::string inspect_text(const InspectReport& report) {
  const Inspection& found = report.found;
  const auto looked = static_cast<double>(found.images.size());
  std::string text = fmt::format("{}: {}, {} class{}; {} of {} images inspected in {:.1f} s, {:.0f} per second{}\n",
                                 printable(found.path.native()), found.folder.layout, found.folder.classes.size(),
                                 found.folder.classes.size() == 1 ? "" : "es",
                                 thousands(static_cast<std::int64_t>(looked)), thousands(found.total), found.seconds,
                                 looked / found.seconds, found.stopped ? "; stopped early" : "");
  return text + inspect_verdict(report) + ".\n" + findings_text(report.findings) + classes_text(report) +
         kinds_text(report);
}

}  // namespace stoker::study
