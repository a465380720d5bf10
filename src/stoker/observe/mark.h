// SPDX-License-Identifier: Apache-2.0
// Names a stage of a step in user code, for its time in the anatomy of the step:
//     const auto stage = observe::mark("tokenize");
// Its time is a part of the phase around it. Profilers and NVTX see it as a range of that name. Costs about 0.1 us.
// Books time only on the thread that trains.
#pragma once

#include <cstddef>
#include <memory>
#include <string_view>

#include "stoker/core/phase_book.h"

namespace stoker::observe {

// Lasts until it is destroyed, on the thread that made it, in reverse order.
class Mark {
 public:
  explicit Mark(std::string_view name);
  ~Mark();
  Mark(const Mark&) = delete;
  Mark& operator=(const Mark&) = delete;

 private:
  struct Range;
  core::PhaseBook* book_;  // null: not the thread that trains
  std::size_t place_ = 0;
  double began_ = 0;
  std::unique_ptr<Range> range_;  // null: no profiler
};

// The first 32 names of a run are booked.
[[nodiscard]] inline Mark mark(std::string_view name) { return Mark(name); }

}  // namespace stoker::observe
