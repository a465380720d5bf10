// SPDX-License-Identifier: Apache-2.0
// NaN for people: a NaN with its sign bit set, as x86 makes them, would be printed as "-nan". Used by everything that
// prints figures.
#pragma once

#include <cmath>
#include <limits>

namespace stoker {

template <typename Real>
[[nodiscard]] Real plain_nan(Real value) {
  return std::isnan(value) ? std::numeric_limits<Real>::quiet_NaN() : value;
}

}  // namespace stoker
