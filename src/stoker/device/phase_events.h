// SPDX-License-Identifier: Apache-2.0
// Times of the phases of a step on the device: an event in the device's current stream at each change of phase, read
// when the device has passed it. Never waits. What lies between two marks includes the time in which the device had
// nothing to do. Made by job for a run on a GPU; a book of phases tells it the changes. One thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "stoker/core/phase_book.h"
#include "stoker/device/backend.h"

namespace stoker::device {

class PhaseEvents final : public core::PhaseListener {
 public:
  static constexpr std::size_t kMostMarks = 1024;  // per step; one with more (170 passes or more) is not timed
  static constexpr std::size_t kInFlight = 4;      // timed steps that the device has not passed yet

  explicit PhaseEvents(c10::Device device) : device_(device) {}

  // A step ends and the next one begins. timed: place marks in the next one, 1 to 2 us of the host for each. Fewer
  // steps are timed if the device is far behind.
  void next_step(bool timed);
  void entered(core::Phase phase) noexcept override;

  // Of all timed steps that the device has passed.
  struct Times {
    std::int64_t steps = 0;
    std::array<double, core::kPhases> seconds{};
  };
  // Whether there was a step with too many marks.
  [[nodiscard]] bool gave_up() const { return gave_up_; }
  // Reads what the device has passed by now. Without effect after the device failed.
  const Times& read() noexcept;

 private:
  struct Mark {
    core::Phase phase = core::Phase::kOther;  // that begins
    std::unique_ptr<Event> event;
  };
  struct Step {
    std::vector<Mark> marks;
    std::size_t count = 0;
  };
  void mark(core::Phase phase);
  void add(const Step& step);

  c10::Device device_;
  std::array<Step, kInFlight> steps_;     // with as many events as were needed so far
  std::size_t oldest_ = 0, pending_ = 0;  // a ring
  bool timing_ = false;                   // the step after the pending ones is being marked
  bool failed_ = false, gave_up_ = false;
  Times times_;
};

}  // namespace stoker::device
