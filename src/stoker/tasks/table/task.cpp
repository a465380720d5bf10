// SPDX-License-Identifier: Apache-2.0
#include "stoker/tasks/table/task.h"

#include <ATen/ops/tensor.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

#include "stoker/base/error.h"
#include "stoker/base/file.h"
#include "stoker/base/parse_value.h"
#include "stoker/base/permutation.h"
#include "stoker/data/load/tensor_source.h"
#include "stoker/models/tabular_mlp.h"
#include "stoker/tasks/class_weights.h"
#include "stoker/tasks/sampling.h"
#include "stoker/tasks/table/model.h"
#include "stoker/tasks/table/prediction.h"
#include "stoker/tasks/table/recipe.h"
#include "stoker/tasks/table/remarks.h"
#include "stoker/tasks/task_values.h"

namespace stoker::tasks {
namespace {

namespace fs = std::filesystem;
constexpr std::string_view kWhere = "tasks.table";
constexpr double kTestShare = 0.2;  // of the rows, where no test file is given
using Rows = std::vector<std::int64_t>;

std::unique_ptr<NetworkTrainable> make_model_of(const ModelRequest& request, const TableEncoding& encoding,
                                                const nlohmann::json& shape, TableModelOptions options) {
  models::TabularMlpOptions network;
  network.numbers = number_width(encoding);
  for (const CategoryColumn& each : encoding.categories) {
    network.categories.push_back(static_cast<std::int64_t>(each.labels.size()) + 1);
  }
  network.hidden = shape.at("hidden").get<std::int64_t>();
  network.layers = shape.at("layers").get<int>();
  network.dropout = shape.at("dropout").get<double>();
  network.outputs = encoding.regression() ? 1 : static_cast<std::int64_t>(encoding.classes.size());
  network.seed = request.seed;
  options.encoding = encoding;
  return std::make_unique<TableModel>(models::make_tabular_mlp(network), std::move(options));
}

// Which rows a split has, and of which file.
struct SplitRows {
  Rows rows;
  bool test_file = false;
};

// A table of one column has nothing to learn from: with a separator that was asked for, it was the wrong one.
void check_separator(const data::TableData& table, const fs::path& path, const core::TaskValues& own) {
  if (table.columns.size() == 1 && own.contains("sep")) {
    fail<DataError>(kWhere,
                    "{}: has one column with sep={}, \"{}\"; leave sep= out, or name what separates its columns",
                    printable(path.native()), printable(text_value(own, "sep")), printable(table.columns.front().name));
  }
}

class TableTask final : public Task {
 public:
  TableTask(const fs::path& path, const OpenOptions& options) : path_(path), own_(options.own) {
    target_ = text_or(own_, "target", "");
    table_ = data::read_table(path, table_options(own_));
    check_separator(table_, path, own_);
    const std::string test = text_or(own_, "test", "");
    if (!test.empty() && !options.whole) {
      const fs::path file = whole_path(test, path);
      test_table_ = data::read_table(file, table_options(own_));
    }
    cut(options);
    number_target_ = !target_.empty() && holds_numbers(table_.columns[data::find_column(table_, target_)]);
  }

  [[nodiscard]] std::int64_t size(Split split) const override {
    return static_cast<std::int64_t>(of(split).rows.size());
  }
  [[nodiscard]] std::string describe() const override {
    return fmt::format("table, {} columns, target {}", table_.columns.size(),
                       target_.empty() ? "-" : printable(target_));
  }
  [[nodiscard]] std::string details() const override {
    std::string text = fmt::format("{} rows, {} columns\n", table_.rows, table_.columns.size());
    for (const data::TableColumn& column : table_.columns) {
      const auto missing = column.numeric
                               ? std::ranges::count_if(column.numbers, [](double value) { return std::isnan(value); })
                               : std::ranges::count(column.ids, -1);
      text += fmt::format("  {:<24} {}{}\n", printable(column.name),
                          column.numeric ? "numbers" : fmt::format("{} different values", column.labels.size()),
                          missing > 0 ? fmt::format(", {} missing", missing) : "");
    }
    return text;
  }
  [[nodiscard]] const std::vector<std::string>& findings() const override { return findings_; }

  [[nodiscard]] std::vector<core::PlanRow> recipe(const Asked& asked) const override {
    if (target_.empty()) {
      std::vector<std::string> names;
      for (const data::TableColumn& column : table_.columns) {
        names.push_back(printable(column.name));
      }
      fail<ConfigError>(kWhere, "{}: which column is to be predicted? set target=NAME, one of {}",
                        printable(path_.native()), fmt::join(names, ", "));
    }
    return table_recipe({target_, is_regression(), size(Split::kTrain)}, asked.optimizer);
  }
  [[nodiscard]] bool couples_samples(const std::string&) const override { return false; }

  void settle(const std::string&, const core::TaskValues& own) override {
    own_ = own;
    LearnOptions options;
    options.target = target_;
    options.regression = is_regression();
    options.strip = text_value(own, "label_strip");
    options.bins = static_cast<int>(whole_value(own, "bins"));
    if (options.regression && text_or(own, "sampling", "uniform") != "uniform") {
      fail<ConfigError>(kWhere, "sampling=balanced needs classes, {} is a number; leave it out", printable(target_));
    }
    options.leave_out = columns_left_out(own);
    encode(learn_encoding(table_, train_.rows, options, findings_));
    for (const ColumnRemark& remark :
         remarks_on(table_, train_.rows, {options.leave_out, target_, options.regression})) {
      findings_.push_back(fmt::format("{}; {}", remark.text, remark.advice));
    }
  }
  void adopt(const nlohmann::json& card) override {
    card_ = card;
    TableEncoding encoding = encoding_from_json(card);
    target_ = encoding.target;
    encode(std::move(encoding));
  }
  void check_same(const nlohmann::json& card, const std::string& run) const override {
    if (to_json(encoding_from_json(card)) != to_json(encoding_)) {
      fail<CheckpointError>(
          kWhere, "the table's columns or training rows are not those that {} was started with; train anew", run);
    }
  }

  [[nodiscard]] std::unique_ptr<NetworkTrainable> make_model(const ModelRequest& request) const override {
    TableModelOptions options;
    options.label_smoothing = real_value(own_, "label_smoothing");
    if (!encoding_.regression()) {
      options.class_weights =
          class_weights(text_value(own_, "class_weights"), train_labels().counts(encoding_.classes.size()));
    }
    return make_model_of(request, encoding_, shape(), std::move(options));
  }
  [[nodiscard]] BatchChecks checks() const override {
    return {"numbers", encoding_.regression() ? "" : "target", static_cast<std::int64_t>(encoding_.classes.size()), 0};
  }
  [[nodiscard]] std::int64_t sample_flops(const NetworkTrainable&) const override { return 0; }

  [[nodiscard]] std::unique_ptr<core::BatchSource> training_batches(const BatchRequest& request) const override {
    data::TensorSourceOptions options = rows_of(train_);
    options.batch = request.batch;
    options.seed = request.seed;
    options.drop_tail = request.drop_tail;
    options.start = request.start;
    options.shuffle = shuffles(own_);
    options.order = training_order(own_, encoding_.regression() ? data::LabelList() : train_labels(), request);
    return std::make_unique<data::TensorSource>(std::move(options));
  }
  [[nodiscard]] std::unique_ptr<core::BatchSource> evaluation_batches(Split split,
                                                                      const BatchRequest& request) const override {
    data::TensorSourceOptions options = rows_of(of(split));
    options.batch = std::min(std::max<std::int64_t>(request.batch, 1024), size(split));
    options.shuffle = false;
    return std::make_unique<data::TensorSource>(std::move(options));
  }
  [[nodiscard]] std::string sample_name(std::int64_t index) const override {
    return fmt::format("{}, row {}", printable(path_.filename().native()), index + 1);
  }
  // split.csv: of each row of the table, in order, the split that it belongs to.
  [[nodiscard]] std::vector<std::pair<std::string, std::string>> records() const override {
    std::vector<Split> splits(static_cast<std::size_t>(table_.rows));
    for (const Split split : kSplits) {
      for (const std::int64_t row : of(split).test_file ? Rows() : of(split).rows) {
        splits[static_cast<std::size_t>(row)] = split;
      }
    }
    std::string text = "row,split\n";
    for (std::size_t row = 0; row < splits.size(); ++row) {
      text += fmt::format("{},{}\n", row + 1, split_name(splits[row]));
    }
    return {{"split.csv", std::move(text)}};
  }
  [[nodiscard]] nlohmann::json card() const override {
    nlohmann::json json = to_json(encoding_);
    json["network"] = shape();
    for (const char* key : {"sep", "header"}) {  // how its tables are read
      json[key] = text_or(own_, key, "auto");
    }
    return json;
  }

 private:
  // Test rows first, then validation rows of what is left: each cut is the head of a seeded permutation.
  void cut(const OpenOptions& options) {
    Rows rows(static_cast<std::size_t>(table_.rows));
    std::iota(rows.begin(), rows.end(), 0);
    const auto take = [&](double share, std::uint32_t draw) {
      const auto count = static_cast<std::int64_t>(std::llround(share * static_cast<double>(rows.size())));
      const Permutation order(options.seed, draw, std::max<std::uint64_t>(1, rows.size()));
      std::vector<bool> taken(rows.size(), false);
      for (std::int64_t i = 0; i < count; ++i) {
        taken[static_cast<std::size_t>(order(static_cast<std::uint64_t>(i)))] = true;
      }
      Rows head, rest;
      for (std::size_t i = 0; i < rows.size(); ++i) {
        (taken[i] ? head : rest).push_back(rows[i]);
      }
      rows = std::move(rest);
      return head;
    };
    if (test_table_.rows > 0) {
      test_.test_file = true;
      test_.rows.resize(static_cast<std::size_t>(test_table_.rows));
      std::iota(test_.rows.begin(), test_.rows.end(), 0);
    } else if (!options.whole) {
      test_.rows = take(kTestShare, 1);
      findings_.push_back(fmt::format("test: {} of the {} rows, seed {}; give test=FILE for rows of your own",
                                      test_.rows.size(), table_.rows, options.seed));
    }
    val_.rows = take(options.whole ? 0 : options.val, 2);
    train_.rows = std::move(rows);
    if (train_.rows.empty()) {
      fail<DataError>(kWhere, "{}: {} rows leave none to train on", printable(path_.native()), table_.rows);
    }
  }

  [[nodiscard]] data::LabelList train_labels() const {
    Rows labels;
    for (const std::int64_t row : train_.rows) {
      labels.push_back(main_.target.const_data_ptr<std::int64_t>()[row]);
    }
    return data::LabelList::of(labels);
  }
  // By what was asked for, else by the target's values.
  [[nodiscard]] bool is_regression() const {
    const std::string asked = text_or(own_, "regression", "auto");
    return asked == "auto" ? number_target_ : parse_flag("regression", asked);
  }
  [[nodiscard]] nlohmann::json shape() const {
    return card_.is_null() ? nlohmann::json{{"hidden", whole_value(own_, "hidden")},
                                            {"layers", whole_value(own_, "layers")},
                                            {"dropout", real_value(own_, "dropout")}}
                           : card_.at("network");
  }
  void encode(TableEncoding encoding) {
    encoding_ = std::move(encoding);
    const std::string strip = text_or(own_, "label_strip", "");
    main_ = encode_table(table_, encoding_, strip);
    if (test_table_.rows > 0) {
      other_ = encode_table(test_table_, encoding_, strip);
    }
  }
  [[nodiscard]] const SplitRows& of(Split split) const {
    return split == Split::kTrain ? train_ : split == Split::kVal ? val_ : test_;
  }
  [[nodiscard]] data::TensorSourceOptions rows_of(const SplitRows& split) const {
    const EncodedTable& from = split.test_file ? other_ : main_;
    at::Tensor rows = at::tensor(split.rows, at::kLong);
    data::TensorSourceOptions options;
    options.fields = {{"numbers", from.numbers.index_select(0, rows)},
                      {"categories", from.categories.index_select(0, rows)},
                      {"target", from.target.index_select(0, rows)}};
    options.indices = split.rows;
    return options;
  }

  fs::path path_;
  core::TaskValues own_;
  std::string target_;
  bool number_target_ = false;  // its values are a number's rather than classes
  data::TableData table_, test_table_;
  SplitRows train_, val_, test_;
  std::vector<std::string> findings_;
  TableEncoding encoding_;
  EncodedTable main_, other_;
  nlohmann::json card_;  // of the model that was adopted; null: none
};

}  // namespace

TaskKind tabular() {
  TaskKind kind;
  kind.name = "tabular";
  kind.text = "a .csv or .tsv file, also .gz or .zst: classes or a number from the other columns; needs target=NAME";
  kind.settings = table_settings();
  kind.files = {{"test"}};
  kind.models = {"tabular_mlp"};
  kind.recognises = [](const fs::path& path) {
    // Some are recognised so that they are refused by name, with how to convert them.
    constexpr std::array packed = {".gz", ".zst", ".bz2", ".xz", ".lz4"};
    constexpr std::array tables = {".csv",  ".tsv", ".parquet", ".feather", ".arrow",
                                   ".xlsx", ".xls", ".ods",     ".sqlite"};
    const auto ends_in = [](const fs::path& name, const auto& endings) {
      return std::ranges::find(endings, name.extension()) != endings.end();
    };
    return ends_in(ends_in(path, packed) ? path.stem() : path, tables);
  };
  kind.open = [](const fs::path& path, const OpenOptions& options) {
    return std::make_unique<TableTask>(path, options);
  };
  kind.describe_card = [](const nlohmann::json& card) {
    const TableEncoding encoding = encoding_from_json(card);
    return fmt::format("target {}, from {} number and {} category columns\n{}\n", printable(encoding.target),
                       encoding.numbers.size(), encoding.categories.size(),
                       encoding.regression() ? "a number" : class_list(encoding.classes));
  };
  kind.restore = [](const ModelRequest& request, const nlohmann::json& card) {
    return make_model_of(request, encoding_from_json(card), card.at("network"), {});
  };
  kind.open_unlabelled = unlabelled_tables;
  return kind;
}

}  // namespace stoker::tasks
