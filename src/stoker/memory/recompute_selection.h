// SPDX-License-Identifier: Apache-2.0
// Which segments of a model, and which parts of them, a choice means. Used by the recomputation. Thread-safe: no state.
#pragma once

#include <string>
#include <vector>

#include "stoker/core/trainable.h"
#include "stoker/memory/recompute_choice.h"

namespace stoker::memory {

// Parts [first, last) of a segment.
struct PartRange {
  int first = 0, last = 0;
};

struct SelectedSegment {
  bool whole = false;  // the segment as one
  std::vector<PartRange>
      parts;  // in order, apart from each other or of different names; also inside of a whole segment
};

// One for each segment of the model; empty for "none". A name means the segments, or the parts of segments, that bear
// it or begin with it and a dot. Neighbouring parts of one name are one range. ConfigError, with the names that there
// are, for a name without a meaning, and for a model of one segment without parts.
[[nodiscard]] std::vector<SelectedSegment> select_segments(const core::Trainable& model, const RecomputeChoice& choice);

}  // namespace stoker::memory
