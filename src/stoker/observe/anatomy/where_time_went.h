// SPDX-License-Identifier: Apache-2.0
// The anatomy of a run as a table for a terminal: share, milliseconds of a step, and a sparkline over the run, for each
// phase. Used by job's progress sink. One thread.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "stoker/core/observed.h"

namespace stoker::observe {

class WhereTimeWent {
 public:
  static constexpr std::size_t kMostPeriods = 24;  // characters of a sparkline; beyond, neighbours are merged

  void add(const core::Anatomy& period);
  // whole: the anatomy of the run. utf8: block characters, else ASCII. Lines without an end of line after the last.
  [[nodiscard]] std::string text(const core::Anatomy& whole, bool utf8) const;

 private:
  std::vector<core::Anatomy> periods_;       // each of as many of the added ones as
  std::size_t per_place_ = 1, in_last_ = 0;  // per_place_ says; the last may have fewer
};

}  // namespace stoker::observe
