// SPDX-License-Identifier: Apache-2.0
// Arithmetic of sets of time intervals: unions, intersections, differences and lengths. Half-open intervals of whole
// nanoseconds. Used by every analysis of a trace. Thread-safe: no state.
#pragma once

#include <cstdint>
#include <vector>

namespace stoker::observe::trace {

struct Interval {
  std::int64_t begin = 0, end = 0;
  [[nodiscard]] std::int64_t length() const { return end - begin; }
  [[nodiscard]] bool holds(std::int64_t time) const { return begin <= time && time < end; }
  friend bool operator==(const Interval&, const Interval&) = default;
};

// Sorted, disjoint, none empty.
using Intervals = std::vector<Interval>;

// The union of intervals in any order, which may overlap or be empty.
[[nodiscard]] Intervals united(std::vector<Interval> intervals);
[[nodiscard]] std::int64_t length(const Intervals& set);
[[nodiscard]] Intervals common(const Intervals& a, const Intervals& b);
// What of a is not in b.
[[nodiscard]] Intervals without(const Intervals& a, const Intervals& b);

}  // namespace stoker::observe::trace
