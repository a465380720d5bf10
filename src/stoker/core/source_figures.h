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
  double seconds = 0;      // of wall time, summed over the threads that did it
  double cpu_seconds = 0;  // of these, computing; the rest slept, or waited for a core
};

struct SourceFigures {
  double wall_seconds = 0;   // since the source was made
  double wait_seconds = 0;   // of these the consumer waited
  std::int64_t samples = 0;  // that stages worked on
  int threads = 0;           // at work now; 0: the consumer's own
  std::vector<StageFigures> stages;
  double copy_seconds = 0;     // to the device, beside everything else; 0 where nothing is copied
  double slowest_seconds = 0;  // of the slowest sample so far
  std::string slowest;         // its name

  // Seconds of all stages.
  [[nodiscard]] double busy_seconds() const {
    double sum = 0;
    for (const StageFigures& stage : stages) {
      sum += stage.seconds;
    }
    return sum;
  }
};

// A stretch of time between batches and what came of it. An event, too: the loop tells at most one each kFedEach
// seconds.
struct Fed {
  std::int64_t step = 0;
  double seconds = 0;                  // of wall time
  double waited_seconds = 0;           // of these the thread that takes the batches waited for one
  SourceFigures source;                // of that time
  std::vector<StageFigures> consumer;  // what that thread did in between: "step", "log", "checkpoint", "evaluation"
};
inline constexpr double kFedEach = 2;

// What lies between two looks at one source; threads and the slowest sample are the later look's.
[[nodiscard]] inline SourceFigures between(const SourceFigures& earlier, SourceFigures later) {
  later.wall_seconds -= earlier.wall_seconds;
  later.wait_seconds -= earlier.wait_seconds;
  later.samples -= earlier.samples;
  later.copy_seconds -= earlier.copy_seconds;
  for (StageFigures& stage : later.stages) {
    const auto same = std::ranges::find(earlier.stages, stage.name, &StageFigures::name);
    if (same != earlier.stages.end()) {
      stage.seconds -= same->seconds;
      stage.cpu_seconds -= same->cpu_seconds;
    }
  }
  return later;
}

}  // namespace stoker::core
