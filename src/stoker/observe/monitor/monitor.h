// SPDX-License-Identifier: Apache-2.0
// Watches the machine beside a run: one thread reads figures ten times a second and emits one core::Monitored per
// window, with at most half a percent of a core (docs/observe.md). Made by job. at_step() may be called from any
// thread.
#pragma once

#include <cstdint>
#include <memory>
#include <thread>

#include "stoker/core/events.h"
#include "stoker/observe/monitor/sampler.h"

namespace stoker::observe {

class Monitor {
 public:
  // events: must outlive the monitor; also receives what makes the figures misleading here, and why there are no more
  // records if the thread fails, as findings. patience_seconds: what the end waits for the thread at most. ConfigError
  // if the system starts no thread.
  Monitor(core::EventEmitter& events, MonitorOptions options, double patience_seconds = 5);
  // Emits the record of the last window. A thread that the driver of a GPU does not give back is left behind, without
  // the events: a finding says so.
  ~Monitor();
  Monitor(const Monitor&) = delete;
  Monitor& operator=(const Monitor&) = delete;

  // The last finished step, for the records.
  void at_step(std::int64_t step);
  // CPU seconds that the thread has used, at its last record.
  [[nodiscard]] double cpu_seconds() const;

 private:
  struct State;

  std::shared_ptr<State> state_;  // the thread's, too: it may outlive the monitor
  double patience_seconds_;
  std::jthread thread_;
};

}  // namespace stoker::observe
