// SPDX-License-Identifier: Apache-2.0
#include "stoker/augment/grey.h"

#include <cstdint>

#include "stoker/augment/luma.h"
#include "stoker/base/error.h"

namespace stoker::augment {

void check(const Grey& grey) {
  if (!(grey.probability >= 0 && grey.probability <= 1)) {
    fail<ConfigError>("augment.grey", "probability must be 0 to 1, got {}", grey.probability);
  }
}

std::optional<GreyDraw> draw(const Grey& grey, const DrawKey& key) {
  return key.random(RandomOp::kGrey).uniform() < grey.probability ? std::optional(GreyDraw{}) : std::nullopt;
}

void execute(const GreyDraw& /*drawn*/, Pixels pixels) {
  if (pixels.channels != 3) {
    return;
  }
  std::uint8_t* at = pixels.data;
  for (std::ptrdiff_t i = 0, count = pixels.count(); i < count; ++i, at += 3) {
    at[0] = at[1] = at[2] = static_cast<std::uint8_t>(luma(at[0], at[1], at[2]));
  }
}

}  // namespace stoker::augment
