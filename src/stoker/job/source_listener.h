// SPDX-License-Identifier: Apache-2.0
// Receives events of the sources of a training, on their own threads: bad samples go to quarantine.csv and become
// events, remarks become findings. Part of Job.
#pragma once

#include <atomic>
#include <cstdint>

#include "stoker/io/event_bus.h"
#include "stoker/job/quarantine.h"
#include "stoker/job/run_folder.h"
#include "stoker/job/setup.h"

namespace stoker::job {

// Listens to all sources that the setup makes while it lives; it outlives these sources.
class SourceListener {
 public:
  SourceListener(Setup& setup, const RunFolder& run, io::EventBus& bus, std::int64_t first_step);
  ~SourceListener();
  SourceListener(const SourceListener&) = delete;
  SourceListener& operator=(const SourceListener&) = delete;

  // The current step, for the events.
  void at_step(std::int64_t step) { step_ = step; }

 private:
  Setup& setup_;
  Quarantine quarantine_;
  std::atomic<std::int64_t> step_;
};

}  // namespace stoker::job
