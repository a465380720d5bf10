// SPDX-License-Identifier: Apache-2.0
#include "stoker/parallel/pipeline_schedule.h"

#include <algorithm>

namespace stoker::parallel {

int most_in_flight(int stage, int stages, int microbatches) { return std::min(microbatches, 2 * (stages - stage) - 1); }

std::vector<PipelineTurn> one_forward_one_backward(int stage, int stages, int microbatches) {
  const int ahead = most_in_flight(stage, stages, microbatches) - 1;
  std::vector<PipelineTurn> turns;
  int forward = 0;
  while (forward < ahead) {
    turns.push_back({false, forward++});
  }
  for (int backward = 0; backward < microbatches; ++backward) {
    if (forward < microbatches) {
      turns.push_back({false, forward++});
    }
    turns.push_back({true, backward});
  }
  return turns;
}

double ideal_bubble(int stages, int microbatches) {
  return static_cast<double>(stages - 1) / static_cast<double>(microbatches + stages - 1);
}

}  // namespace stoker::parallel
