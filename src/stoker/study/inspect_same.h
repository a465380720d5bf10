// SPDX-License-Identifier: Apache-2.0
// Which pictures are the same, and which look alike: groups of positions in a list of facts. Used by
// inspect_pictures(). Thread-safe: no state.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "stoker/study/inspect_picture.h"

namespace stoker::study {

using Group = std::vector<std::size_t>;  // ascending, at least two

// Pictures with the same size and pixels, whatever their files.
[[nodiscard]] std::vector<Group> same_pictures(std::span<const PictureFacts* const> pictures);

// How look alikes are told, stated here once for texts and tests: at most so many of the 64 bits differ, no mean
// of a quarter by more grey levels, and at least so many of each picture's bits are firm: pictures that are mostly flat
// (drawings, scans) have hardly any bits of their own and all look alike.
inline constexpr int kAlikeBits = 3, kAlikeTint = 20, kFirmBits = 24;

struct Alikes {
  std::vector<Group> groups;  // of each set of same pictures only the first; whoever looks like a member is one
  bool complete = true;       // false: so many hashes are close that not all were compared
};
[[nodiscard]] Alikes alike_pictures(std::span<const PictureFacts* const> pictures);

}  // namespace stoker::study
