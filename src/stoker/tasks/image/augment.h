// SPDX-License-Identifier: Apache-2.0
// What a person can ask of the augmentation of training images beyond its name: the settings, their defaults (all but
// crop_pad off), and what they mean to the augment room. Used by image_task and image_recipe. Thread-safe: no state.
#pragma once

#include <cstdint>
#include <vector>

#include "stoker/augment/image_policy.h"
#include "stoker/augment/mix.h"
#include "stoker/core/task_setting.h"
#include "stoker/tasks/recipe_rows.h"

namespace stoker::tasks {

// crop_pad, flip, rotate, translate, zoom, shear, jitter, hue, grey, blur, erase, mixup, cutmix, mix_block.
[[nodiscard]] std::vector<core::TaskSetting> augment_settings();
// Each one's default, with its reason, for images of that side and a global batch of that size.
void add_augment_rows(RecipeRows& rows, int image_size, std::int64_t batch);

// Sets the policy's pad and flip and its operations, in the order of the settings. A value that is not there, in the
// plan of a run from before there were these settings, is off; crop_pad was an eighth of the side. ConfigError
// for a crop_pad that is as large as the image.
void apply_augment_settings(const core::TaskValues& own, augment::ImagePolicy& policy);
// For a global batch of that size. ConfigError that names mix_block where no block divides it.
[[nodiscard]] augment::Mix mix_of(const core::TaskValues& own, std::int64_t batch);

}  // namespace stoker::tasks
