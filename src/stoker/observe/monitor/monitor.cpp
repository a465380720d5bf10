// SPDX-License-Identifier: Apache-2.0
#include "stoker/observe/monitor/monitor.h"

#include <chrono>
#include <new>
#include <utility>

#include "stoker/base/clock.h"
#include "stoker/base/start_thread.h"

namespace stoker::observe {

Monitor::Monitor(core::EventEmitter& events, MonitorOptions options)
    : events_(events),
      options_(std::move(options)),
      thread_(start_thread("observe.monitor", "watches the machine",
                           [this](const std::stop_token& stopping) { run(stopping); })) {}

Monitor::~Monitor() {
  thread_.request_stop();
  thread_.join();
}

void Monitor::emit(std::optional<core::Monitored> record) {
  if (record) {
    record->time = clock_s(CLOCK_REALTIME);
    record->step = step_.load(std::memory_order_relaxed);
    events_.emit(std::move(*record));
    cpu_seconds_.store(thread_cpu_s(), std::memory_order_relaxed);
  }
}

// Without memory for a record there is none, and the run goes on.
void Monitor::run(const std::stop_token& stopping) try {
  Sampler sampler(options_, now_s());
  for (const std::string& text : sampler.pitfalls()) {
    events_.emit(core::Finding{text});
  }
  std::unique_lock lock(mutex_);
  double next = now_s();
  while (true) {
    next = std::max(next + kTickSeconds, now_s());  // ticks that were missed are not made up for
    const auto wait = std::chrono::duration<double>(next - now_s());
    if (wake_.wait_for(lock, stopping, wait, [&] { return stopping.stop_requested(); })) {
      break;
    }
    try {
      emit(sampler.tick(now_s()));
    } catch (const std::bad_alloc&) {  // NOLINT(bugprone-empty-catch)
    }
  }
  emit(sampler.finish(now_s()));
} catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): as above; a monitor never ends a run
}

}  // namespace stoker::observe
