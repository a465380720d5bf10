// SPDX-License-Identifier: Apache-2.0
// Facts of a running program that was watched from outside for some seconds. Thread-safe: no state.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "stoker/observe/doctor/facts.h"
#include "stoker/observe/doctor/stack_samples.h"

namespace stoker::observe::doctor {

// A few seconds of it.
struct ProcessSlice {
  double seconds = 0;
  std::map<std::string, double> figures;  // the monitor's
  double children_cpu_seconds = 0;        // of the processes that it started, such as workers
  std::optional<StackSamples> stacks;     // none: nobody sampled them
};

// job: for people. Without stacks, the periods have no parts.
[[nodiscard]] Facts process_facts(std::string job, const std::vector<ProcessSlice>& slices);

}  // namespace stoker::observe::doctor
