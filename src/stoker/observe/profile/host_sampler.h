// SPDX-License-Identifier: Apache-2.0
// Samples the call stacks of this process's threads, each after every millisecond of CPU time: what Kineto does not
// see, such as the loader's threads and C++ code outside of operators. Used by job::ProfileWatch. One at a time; start
// and stop on one thread.
//
// A timer per thread sends SIGPROF, whose handler walks the stack by the unwind tables (docs/decisions/host-stacks.md).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace stoker::observe::profile {

struct HostSample {
  static constexpr std::size_t kDepth = 40;
  std::int32_t thread = 0;                      // the kernel's number
  std::int32_t depth = 0;                       // frames in use
  std::array<std::uintptr_t, kDepth> frames{};  // addresses in the code, innermost first
};

class HostSampler {
 public:
  // Starts with the threads that exist now.
  HostSampler();
  // Stops.
  ~HostSampler();
  HostSampler(const HostSampler&) = delete;
  HostSampler& operator=(const HostSampler&) = delete;

  // Stops; the samples so far, at most kMost.
  [[nodiscard]] std::vector<HostSample> stop();
  // Why it takes no samples; empty if it does.
  [[nodiscard]] const std::string& missing() const { return missing_; }

  static constexpr std::size_t kMost = 20'000;
  static constexpr double kEvery = 0.001;  // seconds of a thread's CPU time

 private:
  struct Timers;
  std::unique_ptr<Timers> timers_;
  std::string missing_;
};

}  // namespace stoker::observe::profile
