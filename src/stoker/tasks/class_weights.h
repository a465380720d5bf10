// SPDX-License-Identifier: Apache-2.0
// Options that classifiers of all kinds of data share (weight of each class, label smoothing), and the names of classes
// as text. Used by the tasks; no state.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "stoker/core/option_table.h"

namespace stoker::tasks {

struct ClassOptions {
  double label_smoothing = 0;  // share of the target spread over all classes
  std::string class_weights = "none";
};
[[nodiscard]] std::vector<core::OptionRow<ClassOptions>> class_options();

// "3 classes: cat, dog, fish", at most 20 names.
[[nodiscard]] std::string class_list(const std::vector<std::string>& classes);

// counts: samples of each class. "none": undefined; "balanced": N / (classes * N_c), 0 for a class without samples; or
// the listed numbers. float32 [classes]. ConfigError if their number is not the number of classes, or all are 0.
[[nodiscard]] at::Tensor class_weights(const std::string& text, const std::vector<std::int64_t>& counts);

}  // namespace stoker::tasks
