// SPDX-License-Identifier: Apache-2.0
// What a source of batches and its consumer have spent where, so that observe can say why data comes late. Counted
// always; sums since the source was made, of which two are subtracted to look at a stretch of time. Plain values.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace stoker::core {

// One kind of work on a sample: "read", "JPEG decode".
struct StageFigures {
  std::string name;
  double seconds = 0;                // of wall time, summed over the threads that did it
  double probed_seconds = 0;         // of these, those that were looked at more closely:
  double probed_cpu_seconds = 0;     // the CPU time of these
  double probed_asleep_seconds = 0;  // of these, waiting for what a thread waits for of itself: a disk, a network

  // Of `seconds`, computing; the rest slept, or waited for a core. All, where nothing was probed.
  [[nodiscard]] double cpu_seconds() const {
    return probed_seconds > 0 ? seconds * std::clamp(probed_cpu_seconds / probed_seconds, 0.0, 1.0) : seconds;
  }
  // Of `seconds`, asleep; none, where nothing was probed.
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
  int threads = 0;           // at work now; 0: between steps, the consumer's own and up to `cores` of its operators'
  int cores = 0;             // of these so many compute at a time; 0: all
  std::vector<StageFigures> stages;
  double copy_seconds = 0;     // to the device, beside everything else; 0 where nothing is copied
  double slowest_seconds = 0;  // of the slowest sample so far
  std::string slowest;         // its name

  [[nodiscard]] double busy_seconds() const { return sum_of(stages).seconds; }
};

// A stretch of time between batches and what came of it. An event, too: the loop tells at most one each kFedEach
// seconds.
struct Fed {
  std::int64_t step = 0;
  double seconds = 0;                  // of wall time
  double waited_seconds = 0;           // of these the thread that takes the batches waited for one
  SourceFigures source;                // of that time
  std::vector<StageFigures> consumer;  // what it did in between: "step", "device wait", "log", "checkpoint", ...
};
inline constexpr double kFedEach = 2;

// What lies between two looks at one source; threads are the later look's. The slowest sample is none where it is one
// of before: an old one explains nothing that is late now.
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

}  // namespace stoker::core
