// SPDX-License-Identifier: Apache-2.0
// Samples where this process's threads are in their code, each after every millisecond of its CPU time: what Kineto
// does not see, such as the loader's threads and C++ code outside of operators. Used by job::ProfileWatch. One at a
// time; start and stop on one thread.
//
// A timer per thread sends SIGPROF, whose handler notes the address of the interrupted instruction
// (docs/decisions/host-code.md).
#pragma once

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

  static constexpr std::size_t kMost = 200'000;
  static constexpr double kEvery = 0.001;  // seconds of a thread's CPU time

 private:
  struct Timers;
  std::unique_ptr<Timers> timers_;
  std::string missing_;
};

}  // namespace stoker::observe::profile
