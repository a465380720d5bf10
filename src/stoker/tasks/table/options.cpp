// SPDX-License-Identifier: Apache-2.0
#include "stoker/tasks/table/options.h"

#include <sstream>

namespace stoker::tasks {
namespace {

using core::always;
using core::Choice;
using core::depends;
using core::File;
using core::Flag;
using core::Real;
using core::Text;
using core::Whole;
using O = TableTaskOptions;
using Rows = std::vector<core::OptionRow<O>>;

constexpr auto B = core::OptionGroup::kBehaviour;

bool non_empty(std::string_view text) { return !text.empty(); }

// A row per option: field, key, group, type, default with its reason, help, names in other tools.
// clang-format off
Rows column_options() {
  return {
      {&O::target, {"target", B, Text{"a column's name", non_empty}, depends("must be set"), "the column to predict",
                    {"label", "y", "label_column"}}},
      {&O::test, {"test", B, File{"a table with the same columns"}, always("", "a random fifth of the rows"),
                  "table to test on", {"test_file"}}},
      {&O::sep, {"sep", B, Choice{{"auto", ",", ";", "tab", "|"}},
                 always("auto", "the separator that cuts the first line into the most fields"), "field separator",
                 {"delimiter", "separator"}}},
      {&O::header, {"header", B, Flag{}, always("on", "the first row names the columns"),
                    "whether the first row names the columns; off: their names are 1, 2, ..."}},
      {&O::regression, {"regression", B, Flag{}, depends("inferred from the target"),
                        "predict a number instead of a class"}},
      {&O::leave_out, {"leave_out", B, Text{"names of columns, such as id,name"}, always("", "every column is read"),
                       "columns that the model does not read", {"drop", "ignore", "exclude"}}},
      {&O::label_strip, {"label_strip", B, Text{"characters"}, always("", "labels are used as they are"),
                         "characters to remove from both ends of the target's labels"}},
  };
}

Rows network_options() {
  return {
      {&O::bins, {"bins", B, Whole{1, 1024}, always("32", "each holds about 3 % of the rows"),
                  "bins per numeric column, cut at quantiles of the training rows"}},
      {&O::hidden, {"hidden", B, Whole{1, 65536}, always("256", "wide enough for a few hundred thousand rows"),
                    "width of the hidden layers", {"hidden_size", "width"}}},
      {&O::layers, {"layers", B, Whole{1, 100}, always("3", "enough for most tables"), "hidden layers", {"depth"}}},
      {&O::dropout, {"dropout", B, Real{0, 0.95}, always("0.2", "without it, models overfit small tables"),
                     "dropout probability"}},
  };
}
// clang-format on

}  // namespace

const core::OptionTable<TableTaskOptions>& table_options() {
  static const core::OptionTable<TableTaskOptions> table([] {
    Rows all = column_options();
    core::append_rows(all, network_options());
    core::append_rows(all, class_options());
    core::append_rows(all, sampling_options());
    return all;
  }());
  return table;
}

data::TableOptions reading_options(const TableTaskOptions& options) {
  data::TableOptions reading;
  reading.separator = options.sep == "auto"  ? data::TableOptions::kGuess
                      : options.sep == "tab" ? '\t'
                                             : options.sep.front();
  reading.header = options.header;
  return reading;
}

std::vector<std::string> columns_left_out(const TableTaskOptions& options) {
  std::vector<std::string> names;
  std::istringstream list(options.leave_out);
  for (std::string name; std::getline(list, name, ',');) {
    names.push_back(name);
  }
  return names;
}

}  // namespace stoker::tasks
