// SPDX-License-Identifier: Apache-2.0
#include "stoker/observe/trace/facts/intervals.h"

#include <algorithm>

namespace stoker::observe::trace {

Intervals united(std::vector<Interval> intervals) {
  std::erase_if(intervals, [](const Interval& each) { return each.end <= each.begin; });
  std::ranges::sort(intervals, {}, &Interval::begin);
  Intervals set;
  for (const Interval& each : intervals) {
    if (!set.empty() && each.begin <= set.back().end) {
      set.back().end = std::max(set.back().end, each.end);
    } else {
      set.push_back(each);
    }
  }
  return set;
}

std::int64_t length(const Intervals& set) {
  std::int64_t sum = 0;
  for (const Interval& each : set) {
    sum += each.length();
  }
  return sum;
}

Intervals common(const Intervals& a, const Intervals& b) {
  Intervals set;
  for (std::size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    const Interval both{std::max(a[i].begin, b[j].begin), std::min(a[i].end, b[j].end)};
    if (both.begin < both.end) {
      set.push_back(both);
    }
    ++(a[i].end < b[j].end ? i : j);
  }
  return set;
}

Intervals without(const Intervals& a, const Intervals& b) {
  Intervals set;
  std::size_t j = 0;
  for (Interval rest : a) {
    while (j < b.size() && b[j].end <= rest.begin) {
      ++j;
    }
    for (std::size_t k = j; k < b.size() && b[k].begin < rest.end; ++k) {
      if (rest.begin < b[k].begin) {
        set.push_back({rest.begin, b[k].begin});
      }
      rest.begin = std::max(rest.begin, b[k].end);
    }
    if (rest.begin < rest.end) {
      set.push_back(rest);
    }
  }
  return set;
}

}  // namespace stoker::observe::trace
