// SPDX-License-Identifier: Apache-2.0
// What a burst recorded, before it is explained: calls of operators and named ranges on the host, work of a device,
// allocations. Made by Recorder, read by the rest of this folder. Plain values; times are nanoseconds of one clock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace stoker::observe::profile {

// An operator that ran, or a range that the program named.
struct Call {
  std::string name;                                     // "aten::mm", "step.forward", "ProfilerStep#12"
  std::int64_t begin = 0, end = 0;                      // ns
  std::uint64_t thread = 0;                             // by the profiler's numbers
  std::uint64_t id = 0;                                 // that work of a device refers to; 0: none
  bool range = false;                                   // named by the program; not an operator
  std::vector<std::vector<std::int64_t>> shapes = {};   // per argument; empty for what is no tensor, or a list of them
  std::vector<std::string> types = {};                  // per argument: "float", "c10::BFloat16", "" for none
  std::vector<std::vector<std::int64_t>> numbers = {};  // per argument: whole numbers and lists of them; else empty
  [[nodiscard]] std::int64_t duration() const { return end - begin; }
};

// A kernel, a copy or a fill on a device that is not the host.
struct DeviceWork {
  std::string name;
  std::int64_t begin = 0, end = 0;  // ns
  std::int64_t stream = 0;
  std::uint64_t call = 0;  // id of the operator that launched it; 0: unknown
};

struct Allocation {
  std::int64_t time = 0;   // ns
  std::int64_t bytes = 0;  // negative: freed
  std::uint64_t thread = 0;
  bool on_host = true;
};

// A whole step, "ProfilerStep#12": the name by which readers of PyTorch's traces know it.
inline constexpr const char* kStepName = "ProfilerStep#";
[[nodiscard]] inline bool is_step(const Call& call) { return call.range && call.name.starts_with(kStepName); }

struct Recorded {
  std::vector<Call> calls = {};
  std::vector<DeviceWork> work = {};
  std::vector<Allocation> allocations = {};
  std::uint64_t thread = 0;                 // that took the steps
  std::vector<std::int64_t> steps_ns = {};  // duration of each step, in order
};

// Removes what began after the first `steps` steps.
void keep_steps(Recorded& recorded, std::size_t steps);

}  // namespace stoker::observe::profile
