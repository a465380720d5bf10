// SPDX-License-Identifier: Apache-2.0
// Translates the options of decoding and scaling for the data and augment rooms. Used by the image task and its recipe.
// Thread-safe: no state.
#pragma once

#include <optional>
#include <string_view>

#include "stoker/augment/resize.h"
#include "stoker/data/decode/image_decode.h"
#include "stoker/tasks/image/options.h"

namespace stoker::tasks {

// The name on a card, and back; empty for another name.
[[nodiscard]] std::string_view name_of(augment::Interpolation interpolation);
[[nodiscard]] std::optional<augment::Interpolation> interpolation_from(std::string_view name);

[[nodiscard]] augment::Interpolation interpolation_of(const ImageOptions& options);
// Whether training images may be decoded at a part of their size. ConfigError if a cache is to keep them decoded too.
[[nodiscard]] bool decodes_fast(const ImageOptions& options);
[[nodiscard]] data::DecodeLimits limits_of(const ImageOptions& options);

}  // namespace stoker::tasks
