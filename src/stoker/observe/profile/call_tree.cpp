// SPDX-License-Identifier: Apache-2.0
#include "stoker/observe/profile/call_tree.h"

#include <algorithm>
#include <numeric>
#include <tuple>

namespace stoker::observe::profile {

CallTree::CallTree(std::span<const Call> calls, bool ranges_only)
    : calls_(calls), parents_(calls.size(), kNone), self_(calls.size(), 0) {
  for (std::size_t i = 0; i < calls.size(); ++i) {
    if (calls[i].range || !ranges_only) {
      order_.push_back(i);
    }
  }
  std::ranges::stable_sort(order_, {}, [&](std::size_t i) {  // of two that begin together the longer one is outside
    return std::tuple(calls[i].thread, calls[i].begin, -calls[i].end);
  });
  std::vector<std::size_t> open;
  for (const std::size_t each : order_) {
    const Call& call = calls[each];
    while (!open.empty() && (calls[open.back()].thread != call.thread || calls[open.back()].end <= call.begin)) {
      open.pop_back();
    }
    self_[each] = call.duration();
    if (!open.empty()) {
      parents_[each] = open.back();
      // What overlaps without nesting (clocks are read one after the other) counts once.
      self_[open.back()] -= std::min(call.end, calls[open.back()].end) - call.begin;
    }
    open.push_back(each);
  }
  for (const std::size_t each : order_) {
    self_[each] = std::max<std::int64_t>(0, self_[each]);
  }
}

std::size_t CallTree::innermost(std::uint64_t thread, std::int64_t time) const {
  const auto after = std::ranges::upper_bound(order_, std::tuple(thread, time), {}, [&](std::size_t i) {
    return std::tuple(calls_[i].thread, calls_[i].begin);
  });
  if (after == order_.begin()) {
    return kNone;
  }
  std::size_t call = *(after - 1);
  if (calls_[call].thread != thread) {
    return kNone;
  }
  while (call != kNone && calls_[call].end <= time) {
    call = parents_[call];
  }
  return call;
}

}  // namespace stoker::observe::profile
