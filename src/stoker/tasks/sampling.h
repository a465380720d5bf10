// SPDX-License-Identifier: Apache-2.0
// "shuffle": whether training takes the samples of an epoch in a shuffled order. "sampling": whether it takes every
// sample once an epoch, or each class as often as any other. Used by the tasks, the second by those that have classes.
// Thread-safe: no state.
#pragma once

#include <cstdint>
#include <memory>

#include "stoker/core/task_setting.h"
#include "stoker/data/order/batch_order.h"
#include "stoker/data/order/label_list.h"
#include "stoker/tasks/recipe_rows.h"
#include "stoker/tasks/task.h"

namespace stoker::tasks {

[[nodiscard]] core::TaskSetting shuffle_setting();
void add_shuffle_row(RecipeRows& rows);
// True where an older plan lacks the setting. ConfigError for "off" together with sampling=balanced.
[[nodiscard]] bool shuffles(const core::TaskValues& own);

[[nodiscard]] core::TaskSetting sampling_setting();
// Its default, with the reason.
void add_sampling_row(RecipeRows& rows);

// The order of the training samples with these labels: null, every sample once an epoch, for "uniform" and where an
// older plan lacks the setting; for "balanced" as many draws with replacement, each class with the same chance.
[[nodiscard]] std::shared_ptr<const data::BatchOrder> training_order(const core::TaskValues& own,
                                                                     const data::LabelList& labels,
                                                                     const BatchRequest& request);

}  // namespace stoker::tasks
