// SPDX-License-Identifier: Apache-2.0
// The options of sample order that tasks share: "shuffle" (a new random order each epoch, or index order) and, for data
// with classes, "sampling" (each sample once per epoch, or classes equally likely). Thread-safe: no state.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "stoker/core/option_table.h"
#include "stoker/data/order/batch_order.h"
#include "stoker/data/order/label_list.h"
#include "stoker/tasks/task.h"

namespace stoker::tasks {

struct OrderOptions {
  bool shuffle = true;
};
[[nodiscard]] std::vector<core::OptionRow<OrderOptions>> order_options();

struct SamplingOptions : OrderOptions {
  std::string sampling = "uniform";
};
[[nodiscard]] std::vector<core::OptionRow<SamplingOptions>> sampling_options();

// ConfigError for shuffle=off together with sampling=balanced.
void check_sampling(const SamplingOptions& options);
// The order of the training samples with these labels. "uniform": null, each sample once per epoch; "balanced": the
// same number of draws with replacement, each class with the same probability.
[[nodiscard]] std::shared_ptr<const data::BatchOrder> training_order(const SamplingOptions& options,
                                                                     const data::LabelList& labels,
                                                                     const BatchRequest& request);

}  // namespace stoker::tasks
