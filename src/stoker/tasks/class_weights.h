// SPDX-License-Identifier: Apache-2.0
// Settings and constants that classifiers of any data share: the weight of each class, label smoothing, their names in
// words. Used by the tasks; no state.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "stoker/core/task_setting.h"

namespace stoker::tasks {

// "class_weights": "none", "balanced", or one number a class, separated by commas.
[[nodiscard]] core::TaskSetting class_weights_setting();
// "label_smoothing": share of the target spread over all classes.
[[nodiscard]] core::TaskSetting label_smoothing_setting();

// "3 classes: cat, dog, fish", at most 20 by name.
[[nodiscard]] std::string class_list(const std::vector<std::string>& classes);

// counts: samples of each class. "none": undefined; "balanced": N / (classes * N_c), 0 for a class without samples; or
// the listed numbers. float32 [classes]. ConfigError if their number is not that of the classes, or all are 0.
[[nodiscard]] at::Tensor class_weights(const std::string& text, const std::vector<std::int64_t>& counts);

}  // namespace stoker::tasks
