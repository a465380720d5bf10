// SPDX-License-Identifier: Apache-2.0
// What loading costs, so that plans know whether threads beside the step would pay, and where loaders take more threads
// than cores. Measured by tasks and loaders. A plain value.
#pragma once

namespace stoker::core {

// From this share of sleep in the time of its threads on, a loader takes more of them than it has cores; so many more.
inline constexpr double kSleepWorthReaders = 0.1;
inline constexpr int kMostReaders = 16;

struct LoadTime {
  double seconds = 0;  // of one thread, to read, decode and augment a sample; 0: it lies in memory
  double asleep = 0;   // of these, waiting for a disk or a network: no core is needed for them

  [[nodiscard]] bool worth_readers() const { return asleep > 0 && asleep >= kSleepWorthReaders * seconds; }
};

}  // namespace stoker::core
