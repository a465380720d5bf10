// SPDX-License-Identifier: Apache-2.0
#include "stoker/device/phase_events.h"

namespace stoker::device {

void PhaseEvents::mark(core::Phase phase) {
  Step& step = steps_[(oldest_ + pending_) % kInFlight];
  if (step.count == kMostMarks) {
    timing_ = false;
    gave_up_ = true;
    return;
  }
  if (step.count == step.marks.size()) {
    step.marks.push_back({phase, backend_for(device_).make_event(device_, /*timing=*/true)});
  }
  step.marks[step.count].phase = phase;
  step.marks[step.count].event->record();
  ++step.count;
}

void PhaseEvents::entered(core::Phase phase) noexcept {
  if (!timing_ || failed_) {
    return;
  }
  try {
    mark(phase);
  } catch (...) {  // the step reports the same error
    failed_ = true;
  }
}

void PhaseEvents::next_step(bool timed) {
  if (timing_) {
    entered(core::Phase::kOther);  // the end
    if (timing_ && !failed_) {
      ++pending_;
    }
  }
  read();
  timing_ = timed && !failed_ && pending_ < kInFlight;
  if (timing_) {
    steps_[(oldest_ + pending_) % kInFlight].count = 0;
    entered(core::Phase::kOther);
  }
}

const PhaseEvents::Times& PhaseEvents::read() noexcept {
  try {
    while (!failed_ && pending_ > 0) {
      const Step& step = steps_[oldest_];
      if (!step.marks[step.count - 1].event->ready()) {
        break;
      }
      add(step);
      oldest_ = (oldest_ + 1) % kInFlight;
      --pending_;
    }
  } catch (...) {  // the step reports the same error
    failed_ = true;
  }
  return times_;
}

// All its marks have been passed, so elapsed_ms() does not wait.
void PhaseEvents::add(const Step& step) {
  for (std::size_t i = 0; i + 1 < step.count; ++i) {
    times_.seconds[core::index_of(step.marks[i].phase)] +=
        step.marks[i + 1].event->elapsed_ms(*step.marks[i].event) / 1e3;
  }
  ++times_.steps;
}

}  // namespace stoker::device
