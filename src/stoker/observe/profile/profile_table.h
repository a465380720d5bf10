// SPDX-License-Identifier: Apache-2.0
// What a burst showed: operators by exposed time with shapes, arithmetic and rates, phases, memory by operator. Facts,
// no verdicts. Made from what Recorder recorded; job writes it as a record and shows it. Thread-safe: no state.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "stoker/observe/profile/ceilings.h"
#include "stoker/observe/profile/recorded.h"

namespace stoker::observe::profile {

// All calls of an operator with the same shapes and type, over all steps.
struct OperatorRow {
  std::string name;         // "aten::mm"; of a backward pass also "MmBackward0"
  std::string shapes = {};  // "[64,128] [128,10]"; empty: none
  std::string type = {};    // "float"; empty: none
  std::int64_t calls = 0;
  // On a CPU: time of the thread that steps in this operator and in none that it calls. On a GPU: time in which the
  // device works for it, and had not already been working for another one. These times do not overlap.
  double exposed_seconds = 0;
  double host_seconds = 0;           // of the host's threads in this operator itself
  double flops = 0;                  // 0: no arithmetic that is counted
  double bytes = 0;                  // 0: not counted
  double of_ceiling = -1;            // its rate / the measured ceiling; -1: unknown
  std::int64_t allocated_bytes = 0;  // sum of what it allocated
  bool indexing = false;             // reads or writes by index or mask
};

// A range that the program named. Ranges nest: own time is without inner ranges.
struct PhaseRow {
  std::string name;
  std::int64_t calls = 0;
  double seconds = 0, own_seconds = 0;
};

struct KernelRow {
  std::string name;
  std::int64_t calls = 0;
  double seconds = 0;
  bool indexing = false;
};

struct ProfileTable {
  std::int64_t steps = 0;
  double seconds = 0;                  // of all steps, on the thread that takes them
  double exposed_seconds = 0;          // of all operators
  bool on_device = false;              // exposed times are the device's
  std::vector<OperatorRow> operators;  // the largest exposed time first
  std::vector<PhaseRow> phases;        // in the order of their first call
  std::vector<KernelRow> kernels;      // of a GPU; the longest first
  double flops = 0;
  double mfu = -1;  // time that the ceilings need for the arithmetic / time of the steps; -1: unknown
};

// gpu: the run's device is one; without records of its work, times are the host's.
[[nodiscard]] ProfileTable profile_table(const Recorded& recorded, bool gpu);
// Rates and mfu.
void compare(ProfileTable& table, const Ceilings& ceilings);
// The types of the table's products, by their arithmetic; for measure_ceilings().
[[nodiscard]] std::vector<std::string> product_types(const ProfileTable& table);

}  // namespace stoker::observe::profile
