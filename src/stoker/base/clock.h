// SPDX-License-Identifier: Apache-2.0
// Wall time in seconds from a steady clock, a stopwatch, and CPU time of a thread or the process. Thread-safe: it holds
// no state.
#pragma once

#include <time.h>

#include <chrono>

namespace stoker {

// Seconds since an arbitrary fixed moment; never goes back.
inline double now_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Seconds on one of the system's clocks.
inline double clock_s(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// CPU seconds of the calling thread so far: the time that other work on the machine changes least.
inline double thread_cpu_s() { return clock_s(CLOCK_THREAD_CPUTIME_ID); }

// CPU seconds of all threads of this process so far.
inline double process_cpu_s() { return clock_s(CLOCK_PROCESS_CPUTIME_ID); }

// Seconds since it was made or last restarted.
class Stopwatch {
 public:
  [[nodiscard]] double seconds() const { return now_s() - start_; }
  // The seconds so far; then restarts.
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
