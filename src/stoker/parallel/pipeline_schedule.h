// SPDX-License-Identifier: Apache-2.0
// The order in which a stage of a pipeline computes its microbatches: "one forward, one backward" (1F1B, of PipeDream,
// arXiv:1806.03377, with one optimizer step for all microbatches). Called by train::PipelinePasses. Without torch; no
// state.
#pragma once

#include <vector>

namespace stoker::parallel {

struct PipelineTurn {
  bool backward = false;
  int microbatch = 0;
  bool operator==(const PipelineTurn&) const = default;
};

// All turns of stage `stage` of `stages`. Forward passes first, most_in_flight() of them; then a backward and a forward
// pass in turns; then the backward passes that are left. Both go in the order of microbatches, so gradients are added
// in the order of a plain accumulation. A stage must not wait until a message that it sent has arrived: its neighbour
// may be sending one, too.
[[nodiscard]] std::vector<PipelineTurn> one_forward_one_backward(int stage, int stages, int microbatches);

// Microbatches that a stage has computed forward but not backward, at most: 2 (stages - stage) - 1, of which two more
// than in the next stage. With one more, as in PipeDream, a stage waits in each turn for a message to its neighbour and
// for one back; so messages are hidden that take less than half of a microbatch's passes.
[[nodiscard]] int most_in_flight(int stage, int stages, int microbatches);

// The share of a step in which a stage waits, if all stages take the same time and messages take none.
[[nodiscard]] double ideal_bubble(int stages, int microbatches);

}  // namespace stoker::parallel
