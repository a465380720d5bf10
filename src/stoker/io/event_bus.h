// SPDX-License-Identifier: Apache-2.0
// Carries events from the loop to the sinks without making the loop wait: the loop's emit() only queues, one thread
// reads the steps' scalars from the device, those of some 20 ms at a time, and each sink works on a thread of its own.
// Made by job.
#pragma once

#include <memory>

#include "stoker/core/events.h"

namespace stoker::io {

class EventBus final : public core::EventEmitter {
 public:
  // A sink that throws is detached and the others get a Finding that says why: a full disk under a log ends no run.
  EventBus();
  // Delivers everything first, lets every sink flush, then ends the threads.
  ~EventBus() override;

  // Before the first emit(). Sinks are destroyed with the bus. awaited: flush() waits for this one, a file; others (a
  // terminal, a pipe that nobody reads) may sleep as long as they like.
  void add(std::unique_ptr<core::EventSink> sink, bool awaited = false);

  // Any thread. Returns at once, unless the scalars of 48 steps wait to be read from the device: their slots are used
  // again after 64 steps, so then it waits for the reader. A slow sink never makes it wait: beyond 256 queued events
  // a sink misses steps (StepFinished::merged counts them) unless it wants_every_step(), and nothing else. Throws
  // std::bad_alloc where there is no memory for the event, which is then not emitted, or, on the thread that made the
  // bus, where there was none for the report that a sink has failed.
  void emit(core::Event event) override;
  // Any thread. Returns when every awaited sink has been handed what was emitted so far and has flushed it, or was
  // given up: what is on record then outlives the process. Waits for the device and for the files.
  void flush();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace stoker::io
