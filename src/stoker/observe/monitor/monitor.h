// SPDX-License-Identifier: Apache-2.0
// Watches the machine beside a run: one thread reads figures ten times a second and emits one core::Monitored per
// window, with at most half a percent of a core (docs/observe.md). Made by job. at_step() may be called from any
// thread.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>

#include "stoker/core/events.h"
#include "stoker/observe/monitor/sampler.h"

namespace stoker::observe {

class Monitor {
 public:
  // events: must outlive the monitor; also receives what makes the figures misleading here, as findings. ConfigError if
  // the system starts no thread.
  Monitor(core::EventEmitter& events, MonitorOptions options);
  // Emits the record of the last window.
  ~Monitor();
  Monitor(const Monitor&) = delete;
  Monitor& operator=(const Monitor&) = delete;

  // The last finished step, for the records.
  void at_step(std::int64_t step) { step_.store(step, std::memory_order_relaxed); }
  // CPU seconds that the thread has used, at its last record.
  [[nodiscard]] double cpu_seconds() const { return cpu_seconds_.load(std::memory_order_relaxed); }

 private:
  void run(const std::stop_token& stopping);
  void emit(std::optional<core::Monitored> record);

  core::EventEmitter& events_;
  MonitorOptions options_;
  std::atomic<std::int64_t> step_ = 0;
  std::atomic<double> cpu_seconds_ = 0;
  std::mutex mutex_;
  std::condition_variable_any wake_;
  std::jthread thread_;  // last: it uses the others
};

}  // namespace stoker::observe
