// SPDX-License-Identifier: Apache-2.0
// What is known about a training, from whatever recorded it: where the time of its steps went, period by period,
// figures with their source, and words. Rules read it. What nobody recorded is missing, never 0. Plain values.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "stoker/core/source_figures.h"

namespace stoker::observe::doctor {

// Seconds in a part of a step. Of them on a core: -1 if nobody measured it.
struct PartTime {
  double seconds = 0, cpu_seconds = -1;
};
using Parts = std::map<std::string, PartTime, std::less<>>;  // "fetch", "forward", "checkpoint", ...

// Some steps after each other.
struct Period {
  std::int64_t last_step = 0, steps = 0;
  double seconds = 0;  // of wall time
  Parts parts;         // of the thread that trains; each moment is in one part
  std::optional<core::SourceFigures> loader;

  [[nodiscard]] double part(std::string_view name) const;  // seconds; 0 if the part did not occur
  [[nodiscard]] double paused() const;                     // seconds in which no step is made
};

// A number as one of the records gives it, as a mean over the periods if it varies.
struct Figure {
  double value = 0;
  std::string source;  // "monitor": what recorded it
};

// A pause that a record explains.
struct SlowStep {
  std::int64_t step = 0;
  double seconds = 0, usual_seconds = 0;
  std::string part, cause;
};

// A line of a script at which somebody found it, and how often.
struct Site {
  std::string part;    // of a step, or a stage of the loader: "loader.samples"
  std::string where;   // "train.py:31"; empty: not in the script's own files
  std::string text;    // of the line
  std::string module;  // that it called; empty: none
  std::int64_t looks = 0;
};

// What a function of a script spent in a library that it called, or by itself.
struct CallShare {
  std::string part;     // "loader", "step"
  std::string library;  // "pandas"; "python": the language itself; empty: the function's own lines
  std::string caller;   // "__getitem__ (data.py:25)"; empty: code that is not the script's, or the training loop
  double share = 0;     // of the time of that part
};

// A call of a script's line that waits for the GPU or copies to it, per step.
struct WaitingCall {
  std::string call;  // "item"
  std::string kind;  // "read", "to_cpu", "synchronize", "empty_cache", "to_gpu pageable blocking", ...
  std::string where, text;
  double times = 0, seconds = 0, bytes = 0;
};

// Which kind of record the facts are from.
enum class Source : std::uint8_t { kRun, kTrace, kScript, kProcess };
[[nodiscard]] std::string_view source_name(Source source);  // "run"

struct Facts {
  std::string job;  // for people: "cnn on tar shards, cpu"
  Source source = Source::kRun;
  std::vector<Period> periods;
  // By name; the end of a name is the unit: "process.cpu_cores", "cgroup.throttled_share" (docs/observe.md).
  std::map<std::string, Figure, std::less<>> figures;
  std::map<std::string, std::string, std::less<>> words;  // "plan.threads": "1"
  std::vector<SlowStep> slow_steps;
  std::vector<Site> sites;
  std::vector<CallShare> calls;
  std::vector<WaitingCall> waits;
  std::shared_ptr<const Facts> burst;  // of a script on a GPU: a trace of some of its steps (burst.h); null: none
  std::vector<std::string> damage;     // records that could not be used, with the reason

  [[nodiscard]] std::optional<double> figure(std::string_view name) const;
  [[nodiscard]] std::string_view word(std::string_view name) const;  // empty: unknown
  // Of all periods.
  [[nodiscard]] double seconds() const;
  [[nodiscard]] std::int64_t steps() const;
  // Share of the time, from 0 to 1; none if nobody recorded the parts of the periods.
  [[nodiscard]] std::optional<double> share(std::string_view part) const;
  [[nodiscard]] std::string window() const;  // "steps 12 to 450"; without steps "10 s"
};

// Whether somebody set an option of a run: a default or a timed trial did not choose it.
[[nodiscard]] bool set_by_hand(const Facts& facts, std::string_view option);

}  // namespace stoker::observe::doctor
