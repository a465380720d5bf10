// SPDX-License-Identifier: Apache-2.0
// The time spent by a source of batches and its consumer, so that observe can explain why data is late. Always counted;
// sums since the source was made. Two are subtracted to get a period of time. Plain values.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace stoker::core {

// One kind of work on a sample: "read", "JPEG decode".
struct StageFigures {
  std::string name;
  double seconds = 0;                // of wall time, summed over threads
  double probed_seconds = 0;         // of these, the part that was measured in detail:
  double probed_cpu_seconds = 0;     // CPU time of that part
  double probed_asleep_seconds = 0;  // of that part, waiting for a disk or a network, not for a core

  // Of `seconds`, computing; the rest slept, or waited for a core. All, if nothing was measured in detail.
  [[nodiscard]] double cpu_seconds() const {
    return probed_seconds > 0 ? seconds * std::clamp(probed_cpu_seconds / probed_seconds, 0.0, 1.0) : seconds;
  }
  // Of `seconds`, asleep; none, if nothing was measured in detail.
  [[nodiscard]] double asleep_seconds() const {
    return probed_seconds > 0 ? seconds * std::clamp(probed_asleep_seconds / probed_seconds, 0.0, 1.0) : 0;
  }
};

// Of all stages.
struct StageSums {
  double seconds = 0, cpu_seconds = 0, asleep_seconds = 0;
};
[[nodiscard]] inline StageSums sum_of(const std::vector<StageFigures>& stages) {
  StageSums sum;
  for (const StageFigures& stage : stages) {
    sum.seconds += stage.seconds;
    sum.cpu_seconds += stage.cpu_seconds();
    sum.asleep_seconds += stage.asleep_seconds();
  }
  return sum;
}

struct SourceFigures {
  double wall_seconds = 0;   // since the source was made
  double wait_seconds = 0;   // of these the consumer waited
  std::int64_t samples = 0;  // that stages worked on
  int threads = 0;           // working now; 0: the consumer's thread and up to `cores` operator threads, between steps
  int cores = 0;             // threads that compute at a time; 0: all
  std::vector<StageFigures> stages;
  double copy_seconds = 0;     // to the device, in parallel with other work; 0 if nothing is copied
  double slowest_seconds = 0;  // of the slowest sample so far
  std::string slowest;         // its name

  [[nodiscard]] double busy_seconds() const { return sum_of(stages).seconds; }
};

// A period of time between batches and its figures. Also an event: the loop emits at most one per kFedEach seconds.
struct Fed {
  std::int64_t step = 0;
  double seconds = 0;                  // of wall time
  double waited_seconds = 0;           // of these the consumer waited for a batch
  SourceFigures source;                // of that time
  std::vector<StageFigures> consumer;  // its other work: "step", "device wait", "log", "checkpoint", ...
};
inline constexpr double kFedEach = 2;

// The difference between two readings of one source; threads are those of the later reading. The slowest sample is
// empty if it is from before the period: an old one explains nothing about the present.
[[nodiscard]] inline SourceFigures between(const SourceFigures& earlier, SourceFigures later) {
  later.wall_seconds -= earlier.wall_seconds;
  later.wait_seconds -= earlier.wait_seconds;
  later.samples -= earlier.samples;
  later.copy_seconds -= earlier.copy_seconds;
  if (later.slowest_seconds <= earlier.slowest_seconds) {
    later.slowest_seconds = 0;
    later.slowest.clear();
  }
  for (StageFigures& stage : later.stages) {
    const auto same = std::ranges::find(earlier.stages, stage.name, &StageFigures::name);
    if (same != earlier.stages.end()) {
      stage.seconds -= same->seconds;
      stage.probed_seconds -= same->probed_seconds;
      stage.probed_cpu_seconds -= same->probed_cpu_seconds;
      stage.probed_asleep_seconds -= same->probed_asleep_seconds;
    }
  }
  return later;
}

// A later period of the same source joins an earlier one; threads and cores are those of the later period.
inline void add(SourceFigures& sum, const SourceFigures& later) {
  sum.wall_seconds += later.wall_seconds;
  sum.wait_seconds += later.wait_seconds;
  sum.samples += later.samples;
  sum.copy_seconds += later.copy_seconds;
  sum.threads = later.threads;
  sum.cores = later.cores;
  if (later.slowest_seconds > sum.slowest_seconds) {
    sum.slowest_seconds = later.slowest_seconds;
    sum.slowest = later.slowest;
  }
  for (const StageFigures& stage : later.stages) {
    const auto same = std::ranges::find(sum.stages, stage.name, &StageFigures::name);
    StageFigures& into = same != sum.stages.end() ? *same : sum.stages.emplace_back(StageFigures{.name = stage.name});
    into.seconds += stage.seconds;
    into.probed_seconds += stage.probed_seconds;
    into.probed_cpu_seconds += stage.probed_cpu_seconds;
    into.probed_asleep_seconds += stage.probed_asleep_seconds;
  }
}

}  // namespace stoker::core
