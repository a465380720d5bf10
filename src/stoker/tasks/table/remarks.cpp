// SPDX-License-Identifier: Apache-2.0
#include "stoker/tasks/table/remarks.h"

#include <algorithm>
#include <optional>

#include "stoker/base/file.h"
#include "stoker/base/fmt.h"
#include "stoker/base/thousands.h"
#include "stoker/tasks/table/columns.h"

namespace stoker::tasks {
namespace {

// Empty if a model can read the column.
std::optional<ColumnRemark> remark_on(const data::TableColumn& column, const ColumnFacts& facts, std::int64_t present) {
  const std::string name = printable(column.name), leave = fmt::format("set leave_out={}", name);
  const std::string different =
      fmt::format("{} different values in {} rows", thousands(facts.different), thousands(present));
  switch (facts.nature) {
    case ColumnNature::kFreeText:
      return ColumnRemark{
          "free_text", fmt::format("column \"{}\" is free text ({}, {:.0f} words each)", name, different, facts.words),
          fmt::format(
              "a tabular model treats each different text as a category and does not read its words; {}, and add "
              "what matters in it as separate columns",
              leave)};
    case ColumnNature::kAllOther:
      return ColumnRemark{"all_other",
                          fmt::format("column \"{}\" is different in nearly every row ({})", name, different),
                          fmt::format("a model cannot learn from values that do not repeat; {}", leave)};
    case ColumnNature::kRowNumbers:
      return ColumnRemark{"row_numbers", fmt::format("column \"{}\" seems to number the rows ({})", name, different),
                          fmt::format("new rows have numbers that training never saw; {}", leave)};
    case ColumnNature::kSpoilt: {
      const std::vector<std::string> texts = texts_among_numbers(column);
      return ColumnRemark{
          "spoilt_numbers",
          fmt::format(
              "column \"{}\" contains numbers except for {} other value{} such as \"{}\", and is read as categories",
              name, texts.size(), texts.size() == 1 ? "" : "s", printable(texts.front())),
          "write numbers with a decimal point and without thousands separators, and leave missing values empty"};
    }
    default: return std::nullopt;
  }
}

ColumnRemark telling_remark(const std::string& name, const std::string& target) {
  return {"tells_target",
          fmt::format("column \"{}\" alone predicts the target \"{}\"", printable(name), printable(target)),
          fmt::format("if it is not known before the target, all scores are too good to be true; set leave_out={}",
                      printable(name))};
}

}  // namespace

std::vector<ColumnRemark> remarks_on(const data::TableData& table, const std::vector<std::int64_t>& rows,
                                     const RemarkOptions& options) {
  std::vector<ColumnRemark> remarks;
  if (const data::TableColumn* number = data::named_by_a_number(table); number != nullptr) {
    remarks.push_back({"header", fmt::format("a column is called {}: is the first row data?", printable(number->name)),
                       "set header=off if the table has no header row"});
  }
  const std::size_t target = options.target.empty() ? table.columns.size() : data::find_column(table, options.target);
  std::vector<std::size_t> telling;
  if (target < table.columns.size()) {
    telling = columns_that_tell(table, rows, target, options.regression);
  }
  bool readable = false, any = false;
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    const data::TableColumn& column = table.columns[i];
    if (i == target || std::ranges::find(options.left_out, column.name) != options.left_out.end()) {
      continue;
    }
    const ColumnFacts facts = look_at(column, rows);
    const bool tells = std::ranges::find(telling, i) != telling.end();
    auto remark = remark_on(column, facts, std::ssize(rows) - facts.missing);
    readable |= !remark && facts.nature != ColumnNature::kConstant;
    any |= remark.has_value();
    if (tells) {
      remarks.push_back(telling_remark(column.name, options.target));
    } else if (remark) {
      remarks.push_back(std::move(*remark));
    }
  }
  if (any && !readable) {
    remarks.push_back({"nothing_left", "no column is left that a tabular model can learn from",
                       "expect scores no better than chance; add columns of numbers or of values that repeat"});
  }
  return remarks;
}

}  // namespace stoker::tasks
