// SPDX-License-Identifier: Apache-2.0
#include "stoker/tasks/table/task.h"

#include <ATen/ops/tensor.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "stoker/base/error.h"
#include "stoker/base/file.h"
#include "stoker/data/load/tensor_source.h"
#include "stoker/models/tabular_mlp.h"
#include "stoker/tasks/table/encoder.h"

namespace stoker::tasks {
namespace {

constexpr std::string_view kWhere = "tasks.table";

class ReadyTable final : public WithTable<ReadyTask> {
 public:
  ReadyTable(TableFiles files, TableTaskOptions options, TableEncoding encoding, nlohmann::json network)
      : WithTable(std::move(files)),
        options_(std::move(options)),
        encoding_(std::move(encoding)),
        network_(std::move(network)),
        main_(encode_table(files_.table, encoding_, options_.label_strip)) {
    if (files_.test_table.rows > 0) {
      other_ = encode_table(files_.test_table, encoding_, options_.label_strip);
    }
  }

  void check_same(const nlohmann::json& card, const std::string& run) const override {
    if (to_json(encoding_from_json(card)) != to_json(encoding_)) {
      fail<CheckpointError>(kWhere, "the table's columns or training rows changed since {} was started; train again",
                            run);
    }
  }
  [[nodiscard]] std::unique_ptr<Model> make_model(const ModelRequest& request) const override {
    TableModelOptions model;
    model.label_smoothing = options_.label_smoothing;
    if (!encoding_.regression()) {
      model.class_weights = class_weights(options_.class_weights, train_labels().counts(encoding_.classes.size()));
    }
    return make_table_model(request, encoding_, network_, std::move(model));
  }
  [[nodiscard]] BatchChecks checks() const override {
    return {.input = "numbers",
            .target = encoding_.regression() ? "" : "target",
            .classes = static_cast<std::int64_t>(encoding_.classes.size())};
  }
  [[nodiscard]] std::int64_t sample_flops(const Model&) const override { return 0; }

  [[nodiscard]] std::unique_ptr<core::BatchSource> training_batches(const BatchRequest& request) const override {
    data::TensorSourceOptions options = rows_of(files_.train, request);
    options.batch = request.batch;
    options.seed = request.seed;
    options.drop_tail = request.drop_tail;
    options.start = request.start;
    options.shuffle = options_.shuffle;
    options.order = training_order(options_, encoding_.regression() ? data::LabelList() : train_labels(), request);
    return std::make_unique<data::TensorSource>(std::move(options));
  }
  [[nodiscard]] std::unique_ptr<core::BatchSource> evaluation_batches(Split split,
                                                                      const BatchRequest& request) const override {
    data::TensorSourceOptions options = rows_of(files_.of(split), request);
    options.batch = std::min(std::max<std::int64_t>(request.batch, 1024), size(split));
    options.shuffle = false;
    return std::make_unique<data::TensorSource>(std::move(options));
  }
  [[nodiscard]] std::string sample_name(std::int64_t index) const override {
    return fmt::format("{}, row {}", printable(files_.path.filename().native()), index + 1);
  }
  // split.csv: the split of each row of the table, in order.
  [[nodiscard]] std::vector<std::pair<std::string, std::string>> records() const override {
    std::vector<Split> splits(static_cast<std::size_t>(files_.table.rows));
    for (const Split split : kSplits) {
      for (const std::int64_t row : files_.of(split).test_file ? std::vector<std::int64_t>() : files_.of(split).rows) {
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
    json["network"] = network_;
    for (const char* key : {"sep", "header"}) {  // how its tables are read
      json[key] = table_options().text(options_, key);
    }
    return json;
  }

 private:
  [[nodiscard]] data::LabelList train_labels() const {
    std::vector<std::int64_t> labels;
    for (const std::int64_t row : files_.train.rows) {
      labels.push_back(main_.target.const_data_ptr<std::int64_t>()[row]);
    }
    return data::LabelList::of(labels);
  }
  [[nodiscard]] data::TensorSourceOptions rows_of(const SplitRows& split, const BatchRequest& request) const {
    const EncodedTable& from = split.test_file ? other_ : main_;
    at::Tensor rows = at::tensor(split.rows, at::kLong);
    data::TensorSourceOptions options;
    options.fields = {{"numbers", from.numbers.index_select(0, rows)},
                      {"categories", from.categories.index_select(0, rows)},
                      {"target", from.target.index_select(0, rows)}};
    options.indices = split.rows;
    options.rank = request.rank;
    options.ranks = request.ranks;
    return options;
  }

  TableTaskOptions options_;
  TableEncoding encoding_;
  nlohmann::json network_;
  EncodedTable main_, other_;
};

}  // namespace

std::unique_ptr<ReadyTask> ready_table(TableFiles files, TableTaskOptions options, TableEncoding encoding,
                                       nlohmann::json network) {
  return std::make_unique<ReadyTable>(std::move(files), std::move(options), std::move(encoding), std::move(network));
}

std::unique_ptr<Model> make_table_model(const ModelRequest& request, const TableEncoding& encoding,
                                        const nlohmann::json& network_card, TableModelOptions options) {
  models::TabularMlpOptions network;
  network.numbers = number_width(encoding);
  for (const CategoryColumn& each : encoding.categories) {
    network.categories.push_back(static_cast<std::int64_t>(each.labels.size()) + 1);
  }
  network.hidden = network_card.at("hidden").get<std::int64_t>();
  network.layers = network_card.at("layers").get<int>();
  network.dropout = network_card.at("dropout").get<double>();
  network.outputs = encoding.regression() ? 1 : static_cast<std::int64_t>(encoding.classes.size());
  network.seed = request.seed;
  options.encoding = encoding;
  return std::make_unique<TableModel>(models::make_tabular_mlp(network), std::move(options));
}

}  // namespace stoker::tasks
