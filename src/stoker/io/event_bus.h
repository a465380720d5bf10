// SPDX-License-Identifier: Apache-2.0
// Carries events from the loop to the sinks without making the loop wait: the loop's emit() only queues, one thread
// reads the steps' scalars from the device, and each sink works on a thread of its own. Made by job.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "stoker/core/events.h"

namespace stoker::io {

class EventBus final : public core::EventEmitter {
 public:
  // report: told once, on a sink's thread, why a sink was detached (a full disk in a log never ends a run).
  explicit EventBus(std::function<void(const std::string&)> report);
  // Delivers everything first, lets every sink flush, then ends the threads.
  ~EventBus() override;

  // Before the first emit(). Sinks are destroyed with the bus.
  void add(std::unique_ptr<core::EventSink> sink);

  // Any thread. Returns at once, unless the scalars of 48 steps wait to be read from the device: their slots are used
  // again after 64 steps, so then it waits for the reader. A slow sink never makes it wait: beyond 256 queued events
  // a sink misses steps (StepFinished::merged counts them) unless it wants_every_step(), and nothing else.
  void emit(core::Event event) override;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace stoker::io
