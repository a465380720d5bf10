// SPDX-License-Identifier: Apache-2.0
// Events as plain structs. The loop emits them and never prints, formats or waits; sinks read them on their own threads
// (io::EventBus). Values that a device still computes are passed as a slot of a ScalarRing.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "stoker/core/observed.h"
#include "stoker/core/plan_row.h"
#include "stoker/core/source_figures.h"
#include "stoker/core/trainable.h"

namespace stoker::core {

struct RunStarted {
  std::string folder;  // the run folder
  std::string title;   // "resnet18 on cifar10, cpu"
  std::vector<PlanRow> plan;
  std::vector<std::string> scalars;  // names of StepFinished's scalars, in order; "loss" comes first
  std::int64_t epochs = 0;
  std::int64_t steps_per_epoch = 0;
  std::int64_t first_step = 0;  // not 0 after a resume
  std::int64_t last_step = 0;   // the step after which the run is done
};

inline constexpr std::size_t kMaxScalars = 16;

// The scalars of one step; a missing value is absent (NaN is a value).
struct Scalars {
  std::array<float, kMaxScalars> values{};
  std::size_t count = 0;
};

// Scalars on their way from the device: read() may wait for it.
class PendingScalars {
 public:
  virtual ~PendingScalars() = default;
  [[nodiscard]] virtual Scalars read() const = 0;
};

struct StepFinished {
  Position position;
  std::int64_t step = 0;         // counted over the whole run, from 1
  std::int64_t samples = 0;      // in the global batch
  double seconds = 0;            // from the previous step's end to this one's
  double data_wait_seconds = 0;  // of these, spent waiting for the batch
  double lr = 0;
  std::int64_t memory_bytes = -1;  // held by tensors on the device, -1 if unknown
  std::shared_ptr<const PendingScalars> scalars;
  std::int64_t merged = 0;  // earlier step events that a slow sink never saw
};

struct Evaluated {
  Position position;
  std::int64_t step = 0;
  std::string split;  // "val", "test"
  std::vector<MetricValue> metrics;
  double seconds = 0;
  bool best = false;  // the best of this run so far
};

// The progress of a long evaluation; at most one event per kQuietSeconds.
struct Evaluating {
  std::int64_t step = 0;
  std::string split;  // "val", "test"
  std::int64_t done = 0, samples = 0;
};

struct CheckpointSaved {
  std::int64_t step = 0;
  std::string path;
  std::string kind;  // "last", "best"
};

// A fault that the run survived: a skipped step, a replaced sample.
struct FaultSurvived {
  std::int64_t step = 0;
  std::string kind;  // "non_finite", ...
  std::string text;
};

// A remark for people about their run, with what to do.
struct Finding {
  std::string text;
};

// An image, table or text for people, stored under the run's artifacts/.
struct Artifact {
  std::int64_t step = 0;
  std::string name;
  std::string path;  // relative to the run folder: "artifacts/mistakes.json"
};

// The distribution of a tensor's values, in bins of equal width.
struct Histogram {
  std::string name;
  double low = 0, high = 0;  // ends of the bins
  std::vector<double> counts;
};

// The weights at a checkpoint "last", for logs that draw them, if tensorboard=histograms is set.
struct WeightHistograms {
  std::int64_t step = 0;
  std::vector<Histogram> weights;
};

struct RunFinished {
  std::int64_t step = 0;
  std::string outcome;  // "done", "stopped", "failed", "early_stop", "time_up"
  std::string text;     // one line for people
  double seconds = 0;
};

using Event = std::variant<RunStarted, StepFinished, Fed, Evaluating, Evaluated, CheckpointSaved, FaultSurvived,
                           Finding, Artifact, WeightHistograms, Monitored, Anatomy, RankTimes, SlowStep, RunFinished>;

// After this time without an event, a sink must write its buffered output.
inline constexpr double kQuietSeconds = 0.1;

// Receives events one at a time, in order, on one thread that is not the loop's.
class EventSink {
 public:
  virtual ~EventSink() = default;
  virtual void on(const Event& event) = 0;
  // Writes buffered output (a buffer, a redraw): called on the same thread when no event came for kQuietSeconds, and
  // before the sink is destroyed.
  virtual void flush() {}
  // True if steps must not be merged when the sink is slow: a log with a row per step.
  [[nodiscard]] virtual bool wants_every_step() const { return false; }
};

// Receives events from the loop; returns at once.
class EventEmitter {
 public:
  virtual ~EventEmitter() = default;
  virtual void emit(Event event) = 0;
};

}  // namespace stoker::core
