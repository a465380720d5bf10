// SPDX-License-Identifier: Apache-2.0
#include "stoker/study/inspect/table.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <unordered_set>

#include "stoker/base/clock.h"
#include "stoker/base/file.h"
#include "stoker/base/parse_value.h"
#include "stoker/base/thousands.h"
#include "stoker/data/table/table.h"
#include "stoker/data/text/text_files.h"
#include "stoker/study/inspect/finding_parts.h"
#include "stoker/tasks/table/columns.h"
#include "stoker/tasks/table/options.h"
#include "stoker/tasks/table/recipe.h"
#include "stoker/tasks/table/remarks.h"

namespace stoker::study {
namespace {

using tasks::ColumnFacts;
using tasks::ColumnNature;
using Rows = std::vector<std::int64_t>;
constexpr std::size_t kMostPlots = 60;
constexpr double kManyMissing = 0.5;  // share of the rows

struct Looked {
  data::TableData table;
  Rows rows;                       // all
  std::vector<ColumnFacts> facts;  // by column
  tasks::RemarkOptions options;    // from the command line
};

// The number of rows of each value, most frequent first.
std::vector<std::pair<std::int64_t, std::size_t>> counts_of(const data::TableColumn& column) {
  std::vector<std::pair<std::int64_t, std::size_t>> counts(column.labels.size());
  for (std::size_t i = 0; i < counts.size(); ++i) {
    counts[i].second = i;
  }
  for (const std::int32_t id : column.ids) {
    if (id >= 0) {
      ++counts[static_cast<std::size_t>(id)].first;
    }
  }
  std::ranges::stable_sort(counts, std::greater(), [](const auto& each) { return each.first; });
  return counts;
}

std::vector<double> values_of(const data::TableColumn& column) {
  std::vector<double> values;
  std::ranges::copy_if(column.numbers, std::back_inserter(values), [](double value) { return !std::isnan(value); });
  return values;
}

// "Ideal 40 %, Premium 26 %", "0.2 to 5.01, median 0.7", or an example of its texts.
std::string values_text(const data::TableColumn& column, ColumnNature nature) {
  constexpr std::size_t kLongest = 60;  // bytes of a text
  if (column.labels.empty()) {
    return "";
  }
  if (column.numeric && nature != ColumnNature::kConstant) {
    const Distribution values = distribution_of(values_of(column), Bins::kEqualWidth);
    return fmt::format("{:.6g} to {:.6g}, median {:.6g}", values.least, values.most, values.median);
  }
  if (nature == ColumnNature::kFreeText || nature == ColumnNature::kAllOther) {
    const std::string& text = column.labels.front();
    return "\"" + (text.size() <= kLongest ? text : text.substr(0, data::whole_characters(text, kLongest)) + "...") +
           "\"";
  }
  std::string text;
  const auto counts = counts_of(column);
  for (std::size_t i = 0; i < std::min<std::size_t>(3, counts.size()); ++i) {
    text += fmt::format("{}{} {:.0f} %", i == 0 ? "" : ", ", column.labels[counts[i].second],
                        100.0 * static_cast<double>(counts[i].first) / static_cast<double>(column.ids.size()));
  }
  return text;
}

tasks::Table columns_table(const Looked& looked) {
  tasks::Table table{"columns", {"column", "what", "missing", "different", "values"}, {}};
  for (std::size_t i = 0; i < looked.facts.size(); ++i) {
    const data::TableColumn& column = looked.table.columns[i];
    const ColumnFacts& facts = looked.facts[i];
    table.rows.push_back({column.name, std::string(text_of(facts.nature)), facts.missing, facts.different,
                          values_text(column, facts.nature)});
  }
  return table;
}

std::uint64_t hash_of_row(const data::TableData& table, std::int64_t row) {
  std::vector<std::int32_t> ids;
  for (const data::TableColumn& column : table.columns) {
    ids.push_back(column.ids[static_cast<std::size_t>(row)]);
  }
  return XXH3_64bits(ids.data(), ids.size() * sizeof(ids.front()));
}

void find_doubled_rows(const Looked& looked, std::vector<DataFinding>& findings) {
  std::unordered_set<std::uint64_t> seen;
  std::int64_t doubled = 0, example = -1;
  for (const std::int64_t row : looked.rows) {
    if (!seen.insert(hash_of_row(looked.table, row)).second) {
      example = doubled++ == 0 ? row : example;
    }
  }
  if (doubled > 0) {
    findings.push_back(finding(Grade::kDoubtful, "same",
                               fmt::format("{} of the {} rows {} an earlier row", thousands(doubled),
                                           thousands(looked.table.rows), doubled == 1 ? "repeats" : "repeat"),
                               fmt::format("row {}", example + 1),
                               "a row in train with a duplicate in test makes metrics too good; keep one of each",
                               doubled));
  }
}

void find_gaps(const Looked& looked, std::vector<DataFinding>& findings) {
  for (std::size_t i = 0; i < looked.facts.size(); ++i) {
    const std::string name = printable(looked.table.columns[i].name);
    const double share = static_cast<double>(looked.facts[i].missing) / static_cast<double>(looked.table.rows);
    if (looked.facts[i].missing > 0 && looked.table.columns[i].name == looked.options.target) {
      findings.push_back(
          finding(Grade::kWrong, "no_target",
                  fmt::format("{} rows have no value in the target \"{}\"", thousands(looked.facts[i].missing), name),
                  "", "training stops at such a row; remove them", looked.facts[i].missing));
    } else if (share >= kManyMissing && looked.facts[i].nature != ColumnNature::kConstant) {
      findings.push_back(finding(
          Grade::kDoubtful, "gaps", fmt::format("column \"{}\" is empty in {:.0f} % of the rows", name, 100 * share),
          "", "check that its values are useful; leave_out=" + name + " drops it", looked.facts[i].missing));
    }
  }
}

void find_constants(const Looked& looked, std::vector<DataFinding>& findings) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < looked.facts.size(); ++i) {
    if (looked.facts[i].nature == ColumnNature::kConstant) {
      names.push_back(printable(looked.table.columns[i].name));
    }
  }
  if (!names.empty()) {
    findings.push_back(finding(Grade::kRemark, "constant",
                               fmt::format("{} column{} only one value or none: {}", names.size(),
                                           names.size() == 1 ? " has" : "s have", fmt::join(names, ", ")),
                               "", "training leaves such columns out", std::ssize(names)));
  }
}

void find_rare_classes(const Looked& looked, std::vector<DataFinding>& findings) {
  if (looked.options.target.empty() || looked.options.regression) {
    return;
  }
  const data::TableColumn& target = looked.table.columns[data::find_column(looked.table, looked.options.target)];
  const auto counts = counts_of(target);
  if (counts.size() > 1 &&
      static_cast<double>(counts.front().first) >= kImbalance * static_cast<double>(counts.back().first)) {
    findings.push_back(
        finding(Grade::kDoubtful, "imbalance",
                fmt::format("the target's value \"{}\" has {} rows, \"{}\" has {}",
                            printable(target.labels[counts.front().second]), thousands(counts.front().first),
                            printable(target.labels[counts.back().second]), thousands(counts.back().first)),
                "", "also look at macro_f1; class_weights=balanced or sampling=balanced gives all classes equal weight",
                std::ssize(counts)));
  }
}

std::vector<DataFinding> findings_of(const Looked& looked) {
  std::vector<DataFinding> findings;
  for (const tasks::ColumnRemark& remark : remarks_on(looked.table, looked.rows, looked.options)) {
    const bool wrong = remark.id == "tells_target" || remark.id == "nothing_left";
    findings.push_back(finding(wrong ? Grade::kWrong : Grade::kDoubtful, remark.id, remark.text, "", remark.advice, 1));
  }
  find_gaps(looked, findings);
  find_rare_classes(looked, findings);
  find_doubled_rows(looked, findings);
  find_constants(looked, findings);
  std::ranges::stable_sort(findings, {}, &DataFinding::grade);
  return findings;
}

Looked look(const std::filesystem::path& path, const core::TaskValues& own) {
  tasks::TableTaskOptions options;
  tasks::table_options().overlay(options, own);
  Looked looked;
  looked.table = data::read_table(path, tasks::reading_options(options));
  looked.rows.resize(static_cast<std::size_t>(looked.table.rows));
  std::iota(looked.rows.begin(), looked.rows.end(), 0);
  for (const data::TableColumn& column : looked.table.columns) {
    looked.facts.push_back(tasks::look_at(column, looked.rows));
  }
  looked.options = {tasks::columns_left_out(options), options.target, false};
  for (const std::string& name : looked.options.left_out) {
    (void)data::find_column(looked.table, name);
  }
  if (!looked.options.target.empty()) {
    const auto& target = looked.table.columns[data::find_column(looked.table, looked.options.target)];
    looked.options.regression =
        target.numeric && (own.contains("regression") ? options.regression : tasks::holds_numbers(target));
  }
  return looked;
}

}  // namespace

DataSheet inspect_table(const std::filesystem::path& path, const core::TaskValues& own) {
  const Stopwatch watch;
  const Looked looked = look(path, own);
  std::int64_t missing = 0, numbers = 0;
  DataSheet sheet;
  for (std::size_t i = 0; i < looked.facts.size(); ++i) {
    const data::TableColumn& column = looked.table.columns[i];
    missing += looked.facts[i].missing;
    numbers += column.numeric ? 1 : 0;
    if (column.numeric && looked.facts[i].nature != ColumnNature::kConstant && sheet.plots.size() < kMostPlots) {
      sheet.plots.push_back({column.name, distribution_of(values_of(column), Bins::kEqualWidth)});
    }
  }
  sheet.path = path;
  sheet.kind = "table";
  sheet.looked_at = fmt::format("{} row{}", thousands(looked.table.rows), looked.table.rows == 1 ? "" : "s");
  sheet.counts = {{"rows", looked.table.rows},
                  {"columns", std::ssize(looked.facts)},
                  {"columns_of_numbers", numbers},
                  {"missing_values", missing}};
  sheet.findings = findings_of(looked);
  sheet.tables = {columns_table(looked)};
  sheet.seconds = watch.seconds();
  return sheet;
}

}  // namespace stoker::study
