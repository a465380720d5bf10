// SPDX-License-Identifier: Apache-2.0
// What a person can ask of the way images are decoded and scaled: the settings, their defaults, and what they mean to
// the data and augment rooms. Used by image_task and image_recipe. Thread-safe: no state.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "stoker/augment/resize.h"
#include "stoker/core/task_setting.h"
#include "stoker/data/decode/image_decode.h"
#include "stoker/tasks/recipe_rows.h"

namespace stoker::tasks {

// interpolation, strict, decode.
[[nodiscard]] std::vector<core::TaskSetting> reading_settings();
// Each one's default, with its reason.
void add_reading_rows(RecipeRows& rows);

// As a card says it, and back; empty for another name.
[[nodiscard]] std::string_view name_of(augment::Interpolation interpolation);
[[nodiscard]] std::optional<augment::Interpolation> interpolation_from(std::string_view name);

// Of a plan; the defaults where it is from before there was the setting.
[[nodiscard]] augment::Interpolation interpolation_of(const core::TaskValues& own);
// Whether training images may be decoded at a part of their size. ConfigError where they are to stay decoded, too.
[[nodiscard]] bool decodes_fast(const core::TaskValues& own);
[[nodiscard]] data::DecodeLimits limits_of(const core::TaskValues& own);

}  // namespace stoker::tasks
