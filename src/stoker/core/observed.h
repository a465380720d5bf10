// SPDX-License-Identifier: Apache-2.0
// What was observed of a run and its machine, as events: figures of the machine, where the time of steps went, and
// steps that were slow. Facts without verdicts. A figure that is missing is absent, never zero. Plain values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace stoker::core {

// A number with its unit in its name: "gpu0.power_watts", "process.resident_bytes", "threads.loader.cpu_cores".
struct Figure {
  std::string name;
  double value = 0;
};

// Figures of the machine over the time since the record before. Emitted by observe::Monitor.
struct Monitored {
  double time = 0;        // at the end of the window, seconds since 1970
  double seconds = 0;     // length of the window
  std::int64_t step = 0;  // that had finished then
  std::vector<Figure> figures;
};

// The time of one category of work. Seconds; -1: unknown.
struct PhaseTime {
  std::string name;            // "forward", "device wait", a stage that the user named
  double seconds = 0;          // of wall time of the loop's thread
  double cpu_seconds = -1;     // of these it computed
  double device_seconds = -1;  // of the device, for the same work
  double p50 = -1, p99 = -1;   // of a step; only in the anatomy of a whole session
};

// Where the time of the steps in a period went. The phases' seconds sum to `seconds`.
struct Anatomy {
  bool whole = false;                             // all steps of the session: repeats the time of its other records
  double time = 0;                                // at its end, seconds since 1970
  std::int64_t step = 0;                          // the last one of the period
  std::int64_t steps = 0;                         // in the period
  double seconds = 0;                             // of wall time
  std::vector<PhaseTime> phases;                  // by their order in a step
  std::vector<PhaseTime> marks;                   // that the user named with observe::mark; inside of phases
  double p50 = 0, p90 = 0, p99 = 0, slowest = 0;  // seconds of a step
};

// One rank in a period, on the clock of its host. Seconds; -1: unknown. All but `delayed` sum to the time of the period
// without evaluations and what nothing hid of exchanges.
struct RankTime {
  double data = -1;     // waiting for batches
  double saving = -1;   // checkpoints
  double computed = 0;  // the rest of its own time
  double waited = 0;    // in exchanges, for ranks that came later
  double delayed = -1;  // of the first three: ready to run, without a core
};

// A bucket of gradients in a period.
struct BucketTime {
  std::int64_t bytes = 0;
  double seconds = 0;      // of its sums, from the moment the last rank began until they were done
  std::int64_t steps = 0;  // in which that was measured
};

// What each rank of a run did in a period, as the ranks told each other. Only with several ranks, on rank 0.
struct RankTimes {
  bool whole = false;           // all steps of the session: repeats the time of its other records
  double time = 0;              // at its end, seconds since 1970
  std::int64_t step = 0;        // the last one of the period
  std::int64_t steps = 0;       // in the period, each one from exchange to exchange
  double seconds = 0;           // of wall time, without evaluations
  double exposed = 0;           // of these in exchanges, after the last rank had come: what nothing hid
  std::vector<RankTime> ranks;  // by rank
  std::vector<std::string> hosts;
  std::vector<BucketTime> buckets;
};

// A step that took much longer than usual, and what was seen meanwhile.
struct SlowStep {
  double time = 0;  // at its end, seconds since 1970
  std::int64_t step = 0;
  double seconds = 0, usual_seconds = 0;
  std::string phase;            // where it took longer
  std::string cause;            // for people: "checkpoint", "slow sample a/b.jpg: 1.2 s"; empty if unknown
  std::vector<Figure> figures;  // of this step: page faults, switches
};

}  // namespace stoker::core
