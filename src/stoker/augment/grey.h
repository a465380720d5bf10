// SPDX-License-Identifier: Apache-2.0
// Converts a colour image to grey, as torchvision's RandomGrayscale. An operation (operation.h).
// Thread-safe: no state.
#pragma once

#include <optional>

#include "stoker/augment/draw_key.h"
#include "stoker/augment/pixels.h"

namespace stoker::augment {

struct Grey {
  double probability = 0.1;  // of applying the operation
};

struct GreyDraw {
  bool operator==(const GreyDraw&) const = default;
};

// ConfigError with the name of the value that is out of range.
void check(const Grey& grey);
// Empty if the operation is not applied.
[[nodiscard]] std::optional<GreyDraw> draw(const Grey& grey, const DrawKey& key);
// Sets every channel to the luma (luma.h); a one-channel image stays unchanged.
void execute(const GreyDraw& drawn, Pixels pixels);

}  // namespace stoker::augment
