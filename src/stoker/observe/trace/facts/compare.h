// SPDX-License-Identifier: Apache-2.0
// Two traces of one program side by side, before and after a change: what became faster, slower, new, gone. Kernels are
// matched by name, operators by name and shapes. Thread-safe: no state.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "stoker/observe/trace/facts/facts.h"

namespace stoker::observe::trace {

struct Change {
  enum class Word : std::uint8_t { kFaster, kSlower, kSame, kNew, kGone };
  std::string name, shapes;
  double before = 0, after = 0;              // ns per step, or of the whole trace
  double times_before = 0, times_after = 0;  // calls, counted alike
  Word word = Word::kSame;
  [[nodiscard]] double difference() const { return after - before; }
};
[[nodiscard]] std::string_view change_name(Change::Word word);

struct Comparison {
  bool per_step = false;                     // both traces mark steps: times are means per step; else of whole traces
  double steps_before = 0, steps_after = 0;  // number of steps, or 1
  std::vector<Change> kernels;               // time on devices, largest difference first
  std::vector<Change>
      operators;             // device time that they launched themselves; host time of their own if no device worked
  std::vector<Change> idle;  // by what the host did; names as doing_name()
  bool operators_by_host = false;
};

// A change counts from a fiftieth of the time, and from a ten-thousandth of the step: less is noise.
[[nodiscard]] Comparison compare(const TraceFacts& before, const TraceFacts& after);

}  // namespace stoker::observe::trace
