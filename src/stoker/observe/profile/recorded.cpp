// SPDX-License-Identifier: Apache-2.0
#include "stoker/observe/profile/recorded.h"

#include <algorithm>

namespace stoker::observe::profile {

void keep_steps(Recorded& recorded, std::size_t steps) {
  std::vector<std::int64_t> ends;
  for (const Call& call : recorded.calls) {
    if (is_step(call)) {
      ends.push_back(call.end);
    }
  }
  std::ranges::sort(ends);
  if (steps >= ends.size()) {
    return;
  }
  const std::int64_t end = steps == 0 ? 0 : ends[steps - 1];
  std::erase_if(recorded.calls, [&](const Call& each) { return each.begin >= end; });
  std::erase_if(recorded.work, [&](const DeviceWork& each) { return each.begin >= end; });
  std::erase_if(recorded.allocations, [&](const Allocation& each) { return each.time >= end; });
  recorded.steps_ns.resize(steps);
}

}  // namespace stoker::observe::profile
