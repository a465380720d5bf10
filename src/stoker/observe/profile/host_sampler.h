// SPDX-License-Identifier: Apache-2.0
// Samples where this process's threads are in their code, each after every millisecond of its CPU time, or less often
// where many can work at once: what Kineto does not see, such as the loader's threads and C++ code outside of
// operators. Used by job::ProfileWatch. One at a time; start and stop on one thread.
//
// A timer per thread sends SIGPROF, whose handler notes the address of the interrupted instruction
// (docs/decisions/host-code.md).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace stoker::observe::profile {

struct HostSample {
  std::int32_t thread = 0;     // the kernel's number
  std::uintptr_t address = 0;  // in the code
};

class HostSampler {
 public:
  // Starts with the threads that exist now. most: samples that fit.
  explicit HostSampler(std::size_t most = kMost);
  // Stops.
  ~HostSampler();
  HostSampler(const HostSampler&) = delete;
  HostSampler& operator=(const HostSampler&) = delete;

  // Stops; the samples so far.
  [[nodiscard]] std::vector<HostSample> stop();
  // After stop(): whether more came than fit, so that the last part of the time is missing.
  [[nodiscard]] bool full() const { return full_; }
  // Why it takes no samples; empty if it does.
  [[nodiscard]] const std::string& missing() const { return missing_; }

  static constexpr std::size_t kMost = 200'000;
  static constexpr double kEvery = 0.001;     // seconds of a thread's CPU time, while few threads work
  static constexpr double kPerSecond = 8000;  // samples of all threads together
  // Seconds of CPU time of a thread from one sample to the next, if `threads` can work at once.
  [[nodiscard]] static constexpr double every(std::size_t threads) {
    return std::max(kEvery, static_cast<double>(threads) / kPerSecond);
  }

 private:
  struct Timers;
  std::unique_ptr<Timers> timers_;
  std::string missing_;
  bool full_ = false;
};

}  // namespace stoker::observe::profile
