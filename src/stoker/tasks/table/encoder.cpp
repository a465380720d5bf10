// SPDX-License-Identifier: Apache-2.0
#include "stoker/tasks/table/encoder.h"

#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "stoker/base/error.h"
#include "stoker/base/file.h"

namespace stoker::tasks {
namespace {

constexpr std::string_view kWhere = "tasks.table";
using Rows = std::vector<std::int64_t>;

template <typename T>
T at_row(const std::vector<T>& values, std::int64_t row) {
  return values[static_cast<std::size_t>(row)];
}

struct Moments {
  double mean = 0, deviation = 0;
  std::int64_t missing = 0;
};

Moments moments_of(const std::vector<double>& values, const Rows& rows) {
  std::vector<double> present;
  for (const std::int64_t row : rows) {
    if (!std::isnan(at_row(values, row))) {
      present.push_back(at_row(values, row));
    }
  }
  Moments result;
  result.missing = static_cast<std::int64_t>(rows.size() - present.size());
  if (present.empty()) {
    return result;
  }
  const auto count = static_cast<double>(present.size());
  result.mean = std::accumulate(present.begin(), present.end(), 0.0) / count;
  double squares = 0;
  for (const double value : present) {
    squares += (value - result.mean) * (value - result.mean);
  }
  result.deviation = std::sqrt(squares / count);
  return result;
}

// Quantiles of the standardised training values, each once.
std::vector<double> edges_of(const std::vector<double>& values, const Rows& rows, const Moments& moments, int bins) {
  std::vector<double> sorted;
  for (const std::int64_t row : rows) {
    if (!std::isnan(at_row(values, row))) {
      sorted.push_back((at_row(values, row) - moments.mean) / moments.deviation);
    }
  }
  std::ranges::sort(sorted);
  std::vector<double> edges;
  for (int i = 0; i <= bins; ++i) {
    const double edge = sorted[(sorted.size() - 1) * static_cast<std::size_t>(i) / static_cast<std::size_t>(bins)];
    if (edges.empty() || edge > edges.back()) {
      edges.push_back(edge);
    }
  }
  return edges;
}

std::vector<std::string> labels_in(const data::TableColumn& column, const Rows& rows) {
  std::vector<bool> seen(column.labels.size(), false);
  for (const std::int64_t row : rows) {
    if (const std::int32_t id = at_row(column.ids, row); id >= 0) {
      seen[static_cast<std::size_t>(id)] = true;
    }
  }
  std::vector<std::string> labels;
  for (std::size_t i = 0; i < seen.size(); ++i) {
    if (seen[i]) {
      labels.push_back(column.labels[i]);
    }
  }
  return labels;
}

std::string number_text(double value) { return fmt::format("{}", value); }

// The labels of a target, also if the column has numbers (wine's quality, 0 and 1).
data::TableColumn as_labels(const data::TableColumn& column) {
  if (!column.numeric) {
    return column;
  }
  data::TableColumn result;
  result.name = column.name;
  std::vector<double> values;
  std::ranges::copy_if(column.numbers, std::back_inserter(values), [](double value) { return !std::isnan(value); });
  std::ranges::sort(values);
  values.erase(std::ranges::unique(values).begin(), values.end());
  for (const double value : values) {
    result.labels.push_back(number_text(value));
  }
  for (const double value : column.numbers) {
    result.ids.push_back(
        std::isnan(value) ? -1 : static_cast<std::int32_t>(std::ranges::lower_bound(values, value) - values.begin()));
  }
  return result;
}

void learn_target(const data::TableColumn& column, const Rows& rows, const LearnOptions& options,
                  TableEncoding& encoding) {
  const std::string name = printable(column.name);
  if (options.regression && !column.numeric) {
    fail<DataError>(kWhere,
                    "target \"{}\" contains text such as \"{}\", but regression needs numbers; remove regression=on",
                    name, printable(column.labels.front()));
  }
  if (options.regression) {
    const Moments moments = moments_of(column.numbers, rows);
    encoding.target_mean = moments.mean;
    encoding.target_deviation = moments.deviation;
    if (moments.deviation == 0) {
      fail<DataError>(kWhere, "target \"{}\" has only one value in the training rows; there is nothing to learn", name);
    }
    return;
  }
  for (const std::string& label : labels_in(as_labels(column), rows)) {
    encoding.classes.push_back(stripped(label, options.strip));
  }
  std::ranges::sort(encoding.classes);
  encoding.classes.erase(std::ranges::unique(encoding.classes).begin(), encoding.classes.end());
  if (encoding.classes.size() < 2) {
    fail<DataError>(kWhere, "target \"{}\" has only one value in the training rows; there is nothing to learn", name);
  }
}

void encode_numbers(const data::TableData& table, const TableEncoding& encoding, at::Tensor& out) {
  auto cells = out.accessor<float, 2>();
  auto extra = static_cast<std::int64_t>(encoding.numbers.size());
  for (std::size_t i = 0; i < encoding.numbers.size(); ++i) {
    const NumberColumn& known = encoding.numbers[i];
    const data::TableColumn& column = table.columns[data::find_column(table, known.name)];
    if (!column.numeric) {
      fail<DataError>(kWhere, "column \"{}\" had numbers in training but has text here, such as \"{}\"",
                      printable(known.name), printable(column.labels.front()));
    }
    for (std::int64_t row = 0; row < table.rows; ++row) {
      const double value = at_row(column.numbers, row);
      const bool missing = std::isnan(value);
      cells[row][static_cast<std::int64_t>(i)] =
          missing ? 0.0F : static_cast<float>((value - known.mean) / known.deviation);
      if (known.has_missing) {
        cells[row][extra] = missing ? 1.0F : 0.0F;
      }
    }
    extra += known.has_missing ? 1 : 0;
  }
}

void encode_categories(const data::TableData& table, const TableEncoding& encoding, at::Tensor& out) {
  auto cells = out.accessor<std::int64_t, 2>();
  for (std::size_t i = 0; i < encoding.categories.size(); ++i) {
    const CategoryColumn& known = encoding.categories[i];
    // As written: another file may contain only "007".
    const data::TableColumn& column = table.columns[data::find_column(table, known.name)];
    std::vector<std::int64_t> ids;
    for (const std::string& label : column.labels) {
      const auto found = std::ranges::lower_bound(known.labels, label);
      ids.push_back(found != known.labels.end() && *found == label ? found - known.labels.begin() + 1 : 0);
    }
    for (std::int64_t row = 0; row < table.rows; ++row) {
      const std::int32_t id = at_row(column.ids, row);
      cells[row][static_cast<std::int64_t>(i)] = id < 0 ? 0 : ids[static_cast<std::size_t>(id)];
    }
  }
}

[[noreturn]] void unknown_label(const std::string& label, const TableEncoding& encoding) {
  std::string hint;
  for (const std::string& known : encoding.classes) {
    if (label.size() > known.size() && label.starts_with(known)) {
      hint = fmt::format("; it is \"{}\" followed by \"{}\"; set label_strip={}", printable(known),
                         printable(label.substr(known.size())), printable(label.substr(known.size())));
    }
  }
  fail<DataError>(kWhere, "target \"{}\" has the value \"{}\", which is not in the training data ({}){}",
                  printable(encoding.target), printable(label),
                  printable(fmt::format("{}", fmt::join(encoding.classes, ", "))), hint);
}

at::Tensor encode_target(const data::TableData& table, const TableEncoding& encoding, const std::string& strip) {
  const data::TableColumn& column = table.columns[data::find_column(table, encoding.target)];
  const auto refuse_missing = [&](std::int64_t row) {
    fail<DataError>(kWhere, "row {} has no value in the target \"{}\"; remove such rows", row + 1,
                    printable(encoding.target));
  };
  if (encoding.regression()) {
    at::Tensor target = at::zeros({table.rows}, at::kFloat);
    auto* out = target.mutable_data_ptr<float>();
    for (std::int64_t row = 0; row < table.rows; ++row) {
      if (!column.numeric || std::isnan(at_row(column.numbers, row))) {
        refuse_missing(row);
      }
      out[row] = static_cast<float>((at_row(column.numbers, row) - encoding.target_mean) / encoding.target_deviation);
    }
    return target;
  }
  const data::TableColumn labels = as_labels(column);
  std::vector<std::int64_t> ids;
  for (const std::string& label : labels.labels) {
    const auto found = std::ranges::find(encoding.classes, stripped(label, strip));
    ids.push_back(found - encoding.classes.begin());
  }
  at::Tensor target = at::zeros({table.rows}, at::kLong);
  auto* out = target.mutable_data_ptr<std::int64_t>();
  for (std::int64_t row = 0; row < table.rows; ++row) {
    const std::int32_t id = at_row(labels.ids, row);
    if (id < 0) {
      refuse_missing(row);
    }
    out[row] = ids[static_cast<std::size_t>(id)];
    if (out[row] == static_cast<std::int64_t>(encoding.classes.size())) {
      unknown_label(labels.labels[static_cast<std::size_t>(id)], encoding);
    }
  }
  return target;
}

}  // namespace

std::string stripped(const std::string& text, const std::string& characters) {
  const std::size_t first = text.find_first_not_of(characters);
  return first == std::string::npos ? "" : text.substr(first, text.find_last_not_of(characters) + 1 - first);
}

TableEncoding learn_encoding(const data::TableData& table, const Rows& rows, const LearnOptions& options,
                             std::vector<std::string>& findings) {
  TableEncoding encoding;
  encoding.target = options.target;
  const std::size_t target = data::find_column(table, options.target);
  learn_target(table.columns[target], rows, options, encoding);
  std::vector<bool> unread(table.columns.size(), false);
  for (const std::string& name : options.leave_out) {
    unread[data::find_column(table, name)] = true;
  }
  if (unread[target]) {
    fail<ConfigError>(kWhere, "leave_out names the target \"{}\"; remove it from leave_out", printable(options.target));
  }
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    const data::TableColumn& column = table.columns[i];
    if (i == target || unread[i]) {
      continue;
    }
    const Moments moments = column.numeric ? moments_of(column.numbers, rows) : Moments();
    const std::vector<std::string> labels = column.numeric ? std::vector<std::string>() : labels_in(column, rows);
    if (column.numeric ? moments.deviation == 0 : labels.size() < 2) {
      findings.push_back(fmt::format("column \"{}\" has at most one value in the training rows and is not used",
                                     printable(column.name)));
    } else if (column.numeric) {
      encoding.numbers.push_back({.name = column.name,
                                  .mean = moments.mean,
                                  .deviation = moments.deviation,
                                  .has_missing = moments.missing > 0,
                                  .edges = edges_of(column.numbers, rows, moments, options.bins)});
    } else {
      encoding.categories.push_back({column.name, labels});
    }
  }
  if (encoding.numbers.empty() && encoding.categories.empty()) {
    fail<DataError>(kWhere, "no column except the target has more than one value; there is nothing to learn from");
  }
  return encoding;
}

EncodedTable encode_inputs(const data::TableData& table, const TableEncoding& encoding) {
  const auto marks = std::ranges::count(encoding.numbers, true, &NumberColumn::has_missing);
  EncodedTable result;
  result.numbers = at::zeros({table.rows, static_cast<std::int64_t>(encoding.numbers.size()) + marks}, at::kFloat);
  result.categories = at::zeros({table.rows, static_cast<std::int64_t>(encoding.categories.size())}, at::kLong);
  encode_numbers(table, encoding, result.numbers);
  encode_categories(table, encoding, result.categories);
  return result;
}

EncodedTable encode_table(const data::TableData& table, const TableEncoding& encoding, const std::string& strip) {
  EncodedTable result = encode_inputs(table, encoding);
  result.target = encode_target(table, encoding, strip);
  return result;
}

std::vector<std::string> unseen_categories(const data::TableData& table, const TableEncoding& encoding) {
  std::vector<std::string> findings;
  for (const CategoryColumn& known : encoding.categories) {
    std::vector<std::string> unseen;
    for (const std::string& label : table.columns[data::find_column(table, known.name)].labels) {
      if (!std::ranges::binary_search(known.labels, label)) {
        unseen.push_back(label);
      }
    }
    if (!unseen.empty()) {
      findings.push_back(
          fmt::format("column \"{}\" has {} value{} not seen in training, such as \"{}\"; treated as missing",
                      printable(known.name), unseen.size(), unseen.size() == 1 ? "" : "s", printable(unseen.front())));
    }
  }
  return findings;
}

}  // namespace stoker::tasks
