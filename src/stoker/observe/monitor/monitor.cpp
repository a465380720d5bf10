// SPDX-License-Identifier: Apache-2.0
#include "stoker/observe/monitor/monitor.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <new>
#include <utility>

#include "stoker/base/clock.h"
#include "stoker/base/fmt.h"
#include "stoker/base/start_thread.h"

namespace stoker::observe {

struct Monitor::State {
  State(core::EventEmitter& receiver, MonitorOptions given) : events(&receiver), options(std::move(given)) {}

  void run(const std::stop_token& stopping);
  void watch(const std::stop_token& stopping);
  void record(std::optional<core::Monitored> record);
  void emit(core::Event event);
  void say(const std::string& text);
  void abandon();
  [[nodiscard]] bool has_ended_within(double seconds);

  std::mutex events_mutex;
  core::EventEmitter* events;  // under events_mutex; null: the run is over
  MonitorOptions options;
  std::atomic<std::int64_t> step = 0;
  std::atomic<double> cpu_seconds = 0;
  std::mutex mutex;
  std::condition_variable_any wake;
  bool ended = false;  // under mutex
};

void Monitor::State::emit(core::Event event) {
  const std::lock_guard lock(events_mutex);
  if (events != nullptr) {
    events->emit(std::move(event));
  }
}

// Without memory for it, nothing is said: a monitor never ends a run.
void Monitor::State::say(const std::string& text) {
  try {
    emit(core::Finding{text});
  } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch)
  }
}

void Monitor::State::record(std::optional<core::Monitored> record) {
  if (record) {
    record->time = clock_s(CLOCK_REALTIME);
    record->step = step.load(std::memory_order_relaxed);
    emit(std::move(*record));
    cpu_seconds.store(thread_cpu_s(), std::memory_order_relaxed);
  }
}

void Monitor::State::watch(const std::stop_token& stopping) {
  Sampler sampler(options, now_s());
  for (const std::string& text : sampler.pitfalls()) {
    emit(core::Finding{text});
  }
  double next = now_s();
  while (true) {
    next = std::max(next + kTickSeconds, now_s());  // ticks that were missed are not made up for
    const auto wait = std::chrono::duration<double>(next - now_s());
    std::unique_lock lock(mutex);
    if (wake.wait_for(lock, stopping, wait, [&] { return stopping.stop_requested(); })) {
      break;
    }
    lock.unlock();
    try {
      record(sampler.tick(now_s()));
    } catch (const std::bad_alloc&) {  // NOLINT(bugprone-empty-catch): without memory for a record there is none
    }
  }
  record(sampler.finish(now_s()));
}

void Monitor::State::run(const std::stop_token& stopping) {
  try {
    watch(stopping);
  } catch (const std::exception& error) {
    say(fmt::format("the machine is not watched any more: {}; the run goes on without records of the monitor",
                    error.what()));
  }
  const std::lock_guard lock(mutex);
  ended = true;
  wake.notify_all();
}

bool Monitor::State::has_ended_within(double seconds) {
  std::unique_lock lock(mutex);
  return wake.wait_for(lock, std::chrono::duration<double>(seconds), [this] { return ended; });
}

void Monitor::State::abandon() {
  const std::lock_guard lock(events_mutex);
  events = nullptr;
}

Monitor::Monitor(core::EventEmitter& events, MonitorOptions options, double patience_seconds)
    : state_(std::make_shared<State>(events, std::move(options))),
      patience_seconds_(patience_seconds),
      thread_(start_thread("observe.monitor", "watches the machine",
                           [state = state_](const std::stop_token& stopping) { state->run(stopping); })) {}

Monitor::~Monitor() {
  thread_.request_stop();
  if (state_->has_ended_within(patience_seconds_)) {
    return;  // thread_ is joined
  }
  state_->say(fmt::format(
      "the monitor has not answered for {:g} s, so its last record is missing; the driver of the GPU may hang: try "
      "nvidia-smi, and look at dmesg for Xid errors",
      patience_seconds_));
  state_->abandon();
  thread_.detach();
}

void Monitor::at_step(std::int64_t step) { state_->step.store(step, std::memory_order_relaxed); }

double Monitor::cpu_seconds() const { return state_->cpu_seconds.load(std::memory_order_relaxed); }

}  // namespace stoker::observe
