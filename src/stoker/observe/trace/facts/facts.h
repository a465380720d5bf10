// SPDX-License-Identifier: Apache-2.0
// Everything that this room knows about one trace, without verdicts: what text, JSON, pages and later the doctor read.
// Thread-safe: no state.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "stoker/observe/trace/facts/critical_path.h"
#include "stoker/observe/trace/facts/device_use.h"
#include "stoker/observe/trace/facts/host_work.h"
#include "stoker/observe/trace/facts/idle_time.h"
#include "stoker/observe/trace/facts/links.h"
#include "stoker/observe/trace/facts/memory_curve.h"
#include "stoker/observe/trace/facts/steps.h"
#include "stoker/observe/trace/facts/tables.h"
#include "stoker/observe/trace/trace.h"

namespace stoker::observe::trace {

struct DeviceFactsOfTrace {
  DeviceTime time;
  IdleTime idle;        // of time.steps.window
  IdleTime idle_whole;  // of time.whole.window
};

struct TraceFacts {
  explicit TraceFacts(Trace read);
  TraceFacts(const TraceFacts&) = delete;
  TraceFacts& operator=(const TraceFacts&) = delete;

  const Trace trace;
  const Links links;
  const HostWords words;
  std::vector<Step> steps;
  Intervals window;  // the steps' union; the whole trace if it marks none
  std::vector<DeviceFactsOfTrace> devices;
  std::optional<IdleTime> host_idle;  // of the main thread, if no device worked
  std::vector<WorkSum> work;
  std::vector<OperatorSum> operators;
  std::vector<RangeSum> ranges;
  std::vector<MemoryCurve> memory;
  CriticalPath path;  // of the whole window

  // ns: the mean of the steps; -1 without steps.
  [[nodiscard]] double mean_step() const;
  // ns; the length of the path by kRecordedEdges, searched at each call; -1: none was found.
  [[nodiscard]] std::int64_t recorded_path() const;

 private:
  void take_devices();
  // From the begin of the first step to the end of the last one.
  [[nodiscard]] Interval whole() const;
};

}  // namespace stoker::observe::trace
