// SPDX-License-Identifier: Apache-2.0
// Translates the options of augmentation for the augment room. Used by the image task and its recipe. Thread-safe: no
// state.
#pragma once

#include <cstdint>

#include "stoker/augment/image_policy.h"
#include "stoker/augment/mix.h"
#include "stoker/tasks/image/options.h"

namespace stoker::tasks {

// Sets the policy's pad, flip and operations, in the order of the options. ConfigError for a crop_pad as large as the
// image.
void apply_augment(const ImageOptions& options, augment::ImagePolicy& policy);
// For a global batch of this size. ConfigError that names mix_block if no block divides it.
[[nodiscard]] augment::Mix mix_of(const ImageOptions& options, std::int64_t batch);

}  // namespace stoker::tasks
