// SPDX-License-Identifier: Apache-2.0
// Finds images that are equal and images that look similar: groups of positions in a list of facts. Used by
// inspect_images(). Thread-safe: no state.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "stoker/study/inspect/image_look.h"

namespace stoker::study {

using ImageGroup = std::vector<std::size_t>;  // ascending, at least two

// Images with the same size and pixels; their files may differ.
[[nodiscard]] std::vector<ImageGroup> same_images(std::span<const ImageLook* const> images);

// Limits for similar images, used by texts and tests: the maximum number of the 64 bits that differ, the maximum
// difference of a quarter's mean in grey levels, and the minimum number of firm bits per image. Flat images (drawings,
// scans) have few firm bits and would all be similar.
inline constexpr int kAlikeBits = 3, kAlikeTint = 20, kFirmBits = 24;

struct Alikes {
  std::vector<ImageGroup> groups;  // only the first of equal images; an image similar to any member joins
  bool complete = true;            // false: too many hashes are close, not all were compared
};
[[nodiscard]] Alikes alike_images(std::span<const ImageLook* const> images);

}  // namespace stoker::study
