// SPDX-License-Identifier: Apache-2.0
// Wall time in seconds from a steady clock, and a stopwatch. Thread-safe: it holds no state.
#pragma once

#include <chrono>

namespace stoker {

// Seconds since an arbitrary fixed moment; never goes back.
inline double now_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Seconds since it was made or last restarted.
class Stopwatch {
 public:
  [[nodiscard]] double seconds() const { return now_s() - start_; }
  // The seconds so far; counting begins anew.
  double restart() {
    const double now = now_s();
    const double elapsed = now - start_;
    start_ = now;
    return elapsed;
  }

 private:
  double start_ = now_s();
};

}  // namespace stoker
