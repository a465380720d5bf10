// SPDX-License-Identifier: Apache-2.0
// Explains a step that took much longer than usual: in which phase, and why. Functions without state.
#pragma once

#include <cstdint>

#include "stoker/core/observed.h"
#include "stoker/core/source_figures.h"
#include "stoker/observe/anatomy/thread_usage.h"
#include "stoker/observe/anatomy/usual_step.h"

namespace stoker::observe {

// A step, with the evaluation and the checkpoint after it.
struct StepFacts {
  std::int64_t step = 0;
  double seconds = 0, usual_seconds = 0;  // usual: the median, without evaluations and checkpoints
  PhaseSeconds phases{}, usual{};
  ThreadUsage usage;           // of the loop's thread
  core::SourceFigures source;  // of a time that ends with the step
  double source_seconds = 0;   // how long that time is; what it has besides the step explains nothing
};

// Three times as long as usual, and by more than 1 ms.
[[nodiscard]] bool is_slow(double seconds, double usual_seconds);
// The phase is the one that took most of the extra time. The cause is empty if nothing that was seen explains half of
// that time. `time` is left to the caller.
[[nodiscard]] core::SlowStep explain(const StepFacts& facts);

}  // namespace stoker::observe
