// SPDX-License-Identifier: Apache-2.0
// What a thread of the host was doing, in the words of people who look for lost time: fetching a batch, waiting for the
// device, allocating, calling operators. By the names of recorded calls. Read-only after construction.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "stoker/observe/trace/facts/links.h"
#include "stoker/observe/trace/trace.h"

namespace stoker::observe::trace {

enum class Doing : std::uint8_t {
  kUnattributed,  // nothing that was recorded names it
  kLaunching,     // operators and launches of kernels, one after another
  kRange,         // a range that the program named, or a Python function
  kFetch,         // taking the next batch from a loader
  kSaving,        // checkpoints and logs
  kCollective,    // calls of distributed training
  kCompiling,     // making or loading kernels: Triton, modules of the driver
  kSync,          // waiting for the device: a synchronize call, an event, a copy that blocks
  kAllocation,    // of memory of the device, or of pinned memory, by the driver
  kLatency,       // from the launch of work to its begin on the idle device
  kQueued,        // work was launched in time, but its stream waited for other work, or for the hardware
};
inline constexpr std::size_t kDoings = 11;

// "batch fetch"; for people.
[[nodiscard]] std::string_view doing_name(Doing doing);
// "fetch"; a key of JSON.
[[nodiscard]] std::string_view doing_key(Doing doing);

struct HostWork {
  Doing doing = Doing::kUnattributed;
  std::uint32_t event = kNone;  // the call that names it
};

class HostWords {
 public:
  // Both outlive this.
  HostWords(const Trace& trace, const Links& links);
  // What a thread does whose innermost call is `event`. A call around it that says more wins: waiting for the device
  // inside a loader is fetching. Steps of the profiler name nothing.
  [[nodiscard]] HostWork work(std::uint32_t event) const;

 private:
  [[nodiscard]] HostWork by_calls(std::uint32_t event) const;

  const Trace& trace_;
  const Links& links_;
  std::vector<Doing> of_name_;  // by index in Trace::names: from kFetch on if the name says so, else kLaunching
  std::vector<bool> library_;   // by the same: a frame of Python's or torch's own files
};

}  // namespace stoker::observe::trace
