// SPDX-License-Identifier: Apache-2.0
// Sums of a trace by name: kernels and copies of devices, operators of the host with what they launched, and steps.
// Thread-safe: no state.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "stoker/observe/trace/categories.h"
#include "stoker/observe/trace/facts/links.h"
#include "stoker/observe/trace/facts/steps.h"
#include "stoker/observe/trace/trace.h"

namespace stoker::observe::trace {

struct WorkSum {
  std::string name;
  Kind kind = Kind::kKernel;
  Work work = Work::kCompute;
  std::int64_t times = 0, total = 0, longest = 0;  // ns
  std::int64_t bytes = -1;                         // of copies and fills; -1: unknown
  std::string launched_by;                         // the operator that launched most of it; empty: unknown
};
// Of all devices, most time first.
[[nodiscard]] std::vector<WorkSum> work_sums(const Trace& trace, const Links& links);

struct OperatorSum {
  std::string name, shapes;  // shapes empty: not recorded
  std::int64_t times = 0;
  std::int64_t host = 0;         // ns from begin to end, summed
  std::int64_t host_self = 0;    // of these outside inner calls
  std::int64_t device = 0;       // ns of work that it launched, also through inner operators
  std::int64_t device_self = 0;  // of these launched without an inner operator
};
// By name and shapes; most device_self first, then most host_self.
[[nodiscard]] std::vector<OperatorSum> operator_sums(const Trace& trace, const Links& links);

// A range that the program named, and what it launched. Steps are not among them.
struct RangeSum {
  std::string name;
  std::int64_t times = 0, host = 0, device = 0;  // ns
};
[[nodiscard]] std::vector<RangeSum> range_sums(const Trace& trace, const Links& links);

}  // namespace stoker::observe::trace
