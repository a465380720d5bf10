// SPDX-License-Identifier: Apache-2.0
// The cost of loading, so that plans can decide whether loader threads pay off, and where loaders use more threads than
// cores. Measured by tasks and loaders. A plain value.
#pragma once

namespace stoker::core {

// From this share of sleep in the time of its threads on, a loader may use more threads than cores; at most this many
// more.
inline constexpr double kSleepWorthReaders = 0.1;
inline constexpr int kMostReaders = 16;

struct LoadTime {
  double seconds = 0;  // of one thread, to read, decode and augment a sample; 0: it is in memory
  double asleep = 0;   // of these, waiting for a disk or a network, which needs no core

  [[nodiscard]] bool worth_readers() const { return asleep > 0 && asleep >= kSleepWorthReaders * seconds; }
};

}  // namespace stoker::core
