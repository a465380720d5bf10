// SPDX-License-Identifier: Apache-2.0
// Samples that lie in memory as tensors, as batches: what a table or any small set becomes once it is read. Order and
// position follow promise 1, as the image loader's, or any other BatchOrder. One consumer at a time.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "stoker/core/batch_source.h"
#include "stoker/data/order/batch_order.h"

namespace stoker::data {

struct TensorSourceOptions {
  std::vector<std::pair<std::string, at::Tensor>> fields;  // per sample: dimension 0 of each has as many rows
  std::vector<std::int64_t> indices;        // of each row in its data set, for messages; empty: the row's own number
  core::Position start;                     // the first batch to hand out
  std::shared_ptr<const BatchOrder> order;  // of the rows; null: every row once an epoch, by the options below
  std::int64_t batch = 1;                   // global: samples over all ranks
  std::uint64_t seed = 0;
  bool shuffle = true;
  bool drop_tail = false;
  int rank = 0;
  int ranks = 1;
};

class TensorSource final : public core::BatchSource {
 public:
  // ConfigError for no field, fields of different lengths, or an order of another number of samples.
  explicit TensorSource(TensorSourceOptions options);

  [[nodiscard]] std::optional<core::Batch> next() override;
  [[nodiscard]] std::int64_t steps_per_epoch() const { return options_.order->steps_per_epoch(); }

 private:
  TensorSourceOptions options_;  // with an order
  core::Position position_;
  std::vector<std::int64_t> rows_;  // of the batch that is being made
};

}  // namespace stoker::data
