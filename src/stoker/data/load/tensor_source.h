// SPDX-License-Identifier: Apache-2.0
// Batches of samples that are tensors in memory: a table or any small data set after reading. Order and position follow
// promise 1, as in the image loader, or any other BatchOrder. One consumer at a time.
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
  std::vector<std::pair<std::string, at::Tensor>> fields;  // per sample: dimension 0 of all fields is the same
  std::vector<std::int64_t> indices;        // per row, in its data set, for messages; empty: the row number
  core::Position start;                     // the first batch to hand out
  std::shared_ptr<const BatchOrder> order;  // order of the rows; null: every row once per epoch, by the options below
  std::int64_t batch = 1;                   // global: samples over all ranks
  std::uint64_t seed = 0;
  bool shuffle = true;
  bool drop_tail = false;
  int rank = 0;
  int ranks = 1;
};

class TensorSource final : public core::BatchSource {
 public:
  // ConfigError without fields, for fields of different lengths, or an order with another number of samples.
  explicit TensorSource(TensorSourceOptions options);

  [[nodiscard]] std::optional<core::Batch> next() override;
  [[nodiscard]] std::int64_t steps_per_epoch() const { return options_.order->steps_per_epoch(); }

 private:
  TensorSourceOptions options_;  // with an order
  core::Position position_;
  std::vector<std::int64_t> rows_;  // of the current batch
};

}  // namespace stoker::data
