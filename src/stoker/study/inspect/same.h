// SPDX-License-Identifier: Apache-2.0
// Which images are the same, and which look alike: groups of positions in a list of facts. Used by
// inspect_images(). Thread-safe: no state.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "stoker/study/inspect/image_look.h"

namespace stoker::study {

using ImageGroup = std::vector<std::size_t>;  // ascending, at least two

// Images with the same size and pixels, whatever their files.
[[nodiscard]] std::vector<ImageGroup> same_images(std::span<const ImageLook* const> images);

// How look alikes are told, stated here once for texts and tests: at most so many of the 64 bits differ, no mean
// of a quarter by more grey levels, and at least so many of each image's bits are firm: images that are mostly flat
// (drawings, scans) have hardly any bits of their own and all look alike.
inline constexpr int kAlikeBits = 3, kAlikeTint = 20, kFirmBits = 24;

struct Alikes {
  std::vector<ImageGroup> groups;  // of each set of same images only the first; whoever looks like a member is one
  bool complete = true;            // false: so many hashes are close that not all were compared
};
[[nodiscard]] Alikes alike_images(std::span<const ImageLook* const> images);

}  // namespace stoker::study
