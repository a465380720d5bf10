// SPDX-License-Identifier: Apache-2.0
// A colour image loses its colours, as with torchvision's RandomGrayscale. An operation (operation.h).
// Thread-safe: no state.
#pragma once

#include <optional>

#include "stoker/augment/draw_key.h"
#include "stoker/augment/pixels.h"

namespace stoker::augment {

struct Grey {
  double probability = 0.1;  // that it is done
};

struct GreyDraw {
  bool operator==(const GreyDraw&) const = default;
};

// ConfigError that names the value that cannot be.
void check(const Grey& grey);
// Empty where nothing is to be done.
[[nodiscard]] std::optional<GreyDraw> draw(const Grey& grey, const DrawKey& key);
// Every channel becomes the luma (luma.h); an image of one channel stays as it is.
void execute(const GreyDraw& drawn, Pixels pixels);

}  // namespace stoker::augment
