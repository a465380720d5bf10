// SPDX-License-Identifier: Apache-2.0
// Carries events from the loop to the sinks without making the loop wait: emit() only queues, one thread reads the
// scalars of steps from the device (about 20 ms of steps at a time), and each sink has its own thread. Made by job.
#pragma once

#include <memory>

#include "stoker/core/events.h"

namespace stoker::io {

class EventBus final : public core::EventEmitter {
 public:
  // A sink that throws is asked to flush and detached, and the others get a Finding with the reason: a full disk does
  // not end the run. ConfigError if the system cannot start a thread, also from add().
  EventBus();
  // Delivers everything, lets every sink flush, then ends the threads.
  ~EventBus() override;

  // Call before the first emit(). Sinks are destroyed with the bus. awaited: flush() waits for this sink, e.g. a file;
  // other sinks (a terminal, a pipe without a reader) may block for any time.
  void add(std::unique_ptr<core::EventSink> sink, bool awaited = false);

  // Any thread. Returns at once, unless the scalars of 48 steps are waiting to be read from the device: slots are
  // reused after 64 steps, so then it waits for the reader. A slow sink never makes it wait: beyond 256 queued events
  // steps of that sink are merged (StepFinished::merged counts them) unless it wants_every_step(); nothing else is
  // lost. Throws std::bad_alloc if there is no memory for the event, which is then not emitted, or, on the thread that
  // made the bus, if there was none for the report of a failed sink.
  void emit(core::Event event) override;
  // Any thread. Returns when every awaited sink has received and flushed everything emitted so far, or was dropped: the
  // record then survives the end of the process. Waits for the device and for the files.
  void flush();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace stoker::io
