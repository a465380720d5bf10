// SPDX-License-Identifier: Apache-2.0
#include "stoker/tasks/table/data.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

#include "stoker/base/error.h"
#include "stoker/base/file.h"
#include "stoker/base/permutation.h"
#include "stoker/tasks/named_file.h"
#include "stoker/tasks/table/options.h"
#include "stoker/tasks/table/recipe.h"
#include "stoker/tasks/table/remarks.h"
#include "stoker/tasks/table/task.h"

namespace stoker::tasks {
namespace {

namespace fs = std::filesystem;
constexpr std::string_view kWhere = "tasks.table";
constexpr double kTestShare = 0.2;  // of the rows, if no test file is given

// A table of one column has no inputs: the given separator is wrong.
void check_separator(const data::TableData& table, const fs::path& path, const TableTaskOptions& given) {
  if (table.columns.size() == 1 && given.sep != "auto") {
    fail<DataError>(kWhere,
                    "{}: has only one column with sep={}: \"{}\"; remove sep=, or set the separator of its columns",
                    printable(path.native()), printable(given.sep), printable(table.columns.front().name));
  }
}

// Test rows first, then validation rows of the rest: each split is the start of a seeded permutation.
void cut(TableFiles& files, const OpenOptions& options) {
  std::vector<std::int64_t> rows(static_cast<std::size_t>(files.table.rows));
  std::iota(rows.begin(), rows.end(), 0);
  const auto take = [&](double share, std::uint32_t draw) {
    const auto count = static_cast<std::int64_t>(std::llround(share * static_cast<double>(rows.size())));
    const Permutation order(options.seed, draw, std::max<std::uint64_t>(1, rows.size()));
    std::vector<bool> taken(rows.size(), false);
    for (std::int64_t i = 0; i < count; ++i) {
      taken[static_cast<std::size_t>(order(static_cast<std::uint64_t>(i)))] = true;
    }
    std::vector<std::int64_t> head, rest;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      (taken[i] ? head : rest).push_back(rows[i]);
    }
    rows = std::move(rest);
    return head;
  };
  if (files.test_table.rows > 0) {
    files.test.test_file = true;
    files.test.rows.resize(static_cast<std::size_t>(files.test_table.rows));
    std::iota(files.test.rows.begin(), files.test.rows.end(), 0);
  } else if (!options.whole) {
    files.test.rows = take(kTestShare, 1);
    files.findings.push_back(fmt::format("test: {} of the {} rows, seed {}; set test=FILE for your own test rows",
                                         files.test.rows.size(), files.table.rows, options.seed));
  }
  files.val.rows = take(options.whole ? 0 : options.val, 2);
  files.train.rows = std::move(rows);
  if (files.train.rows.empty()) {
    fail<DataError>(kWhere, "{}: {} rows are too few to train on", printable(files.path.native()), files.table.rows);
  }
}

TableFiles read_files(const fs::path& path, const OpenOptions& options, const TableTaskOptions& given) {
  TableFiles files;
  files.path = path;
  files.target = given.target;
  files.table = data::read_table(path, reading_options(given));
  check_separator(files.table, path, given);
  if (!given.test.empty() && !options.whole) {
    files.test_table = data::read_table(whole_path(given.test, path), reading_options(given));
  }
  cut(files, options);
  return files;
}

TableTaskOptions given_options(const core::TaskValues& own) {
  TableTaskOptions given;
  table_options().overlay(given, own);
  return given;
}

class OpenTable final : public WithTable<OpenData> {
 public:
  OpenTable(const fs::path& path, const OpenOptions& options)
      : WithTable(read_files(path, options, given_options(options.own))), own_(options.own) {
    if (!files_.target.empty()) {
      const data::TableColumn& target = files_.table.columns[data::find_column(files_.table, files_.target)];
      regression_ = own_.contains("regression") ? given_options(own_).regression : holds_numbers(target);
    }
  }

  [[nodiscard]] std::vector<core::PlanRow> recipe(const RecipeRequest& request) const override {
    if (files_.target.empty()) {
      std::vector<std::string> names;
      for (const data::TableColumn& column : files_.table.columns) {
        names.push_back(printable(column.name));
      }
      fail<ConfigError>(kWhere, "{}: the column to predict is not set; set target=NAME, one of {}",
                        printable(files_.path.native()), fmt::join(names, ", "));
    }
    return table_recipe({files_.target, regression_, size(Split::kTrain)}, request.optimizer);
  }
  [[nodiscard]] bool couples_samples(const std::string&) const override { return false; }

  [[nodiscard]] std::unique_ptr<ReadyTask> settle(const std::string&, const core::TaskValues& own) && override {
    const TableTaskOptions options = table_options().parse(own);
    check_sampling(options);
    if (options.regression && options.sampling != "uniform") {
      fail<ConfigError>(kWhere, "sampling=balanced needs classes, but {} is a number; remove it",
                        printable(options.target));
    }
    LearnOptions learn;
    learn.target = options.target;
    learn.regression = options.regression;
    learn.strip = options.label_strip;
    learn.bins = static_cast<int>(options.bins);
    learn.leave_out = columns_left_out(options);
    TableEncoding encoding = learn_encoding(files_.table, files_.train.rows, learn, files_.findings);
    for (const ColumnRemark& remark :
         remarks_on(files_.table, files_.train.rows, {learn.leave_out, options.target, options.regression})) {
      files_.findings.push_back(fmt::format("{}; {}", remark.text, remark.advice));
    }
    const nlohmann::json network = {
        {"hidden", options.hidden}, {"layers", options.layers}, {"dropout", options.dropout}};
    return ready_table(std::move(files_), options, std::move(encoding), network);
  }
  [[nodiscard]] std::unique_ptr<ReadyTask> adopt(const nlohmann::json& card) && override {
    TableEncoding encoding = encoding_from_json(card);
    files_.target = encoding.target;
    return ready_table(std::move(files_), given_options(own_), std::move(encoding), card.at("network"));
  }

 private:
  core::TaskValues own_;
  bool regression_ = false;  // as set, else by the target's values
};

}  // namespace

std::string TableFiles::describe() const {
  return fmt::format("table, {} columns, target {}", table.columns.size(), target.empty() ? "-" : printable(target));
}

std::string TableFiles::details() const {
  std::string text = fmt::format("{} rows, {} columns\n", table.rows, table.columns.size());
  for (const data::TableColumn& column : table.columns) {
    const auto missing = column.numeric
                             ? std::ranges::count_if(column.numbers, [](double value) { return std::isnan(value); })
                             : std::ranges::count(column.ids, -1);
    text += fmt::format("  {:<24} {}{}\n", printable(column.name),
                        column.numeric ? "numbers" : fmt::format("{} different values", column.labels.size()),
                        missing > 0 ? fmt::format(", {} missing", missing) : "");
  }
  return text;
}

std::unique_ptr<OpenData> open_table(const fs::path& path, const OpenOptions& options) {
  return std::make_unique<OpenTable>(path, options);
}

}  // namespace stoker::tasks
