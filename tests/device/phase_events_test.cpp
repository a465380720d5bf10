// SPDX-License-Identifier: Apache-2.0
// Device times of phases, on the CPU's events: they are passed at once, and their times are the wall's.
#include "stoker/device/phase_events.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "stoker/core/phase.h"

namespace stoker::device {
namespace {

using core::index_of;
using core::Phase;
using core::PhaseScope;

void sleep_ms(int ms) { std::this_thread::sleep_for(std::chrono::milliseconds(ms)); }

TEST(PhaseEvents, TimesThePhasesOfTimedSteps) {
  PhaseEvents events(c10::Device(c10::kCPU));
  core::PhaseBook book;
  book.open();
  book.listen(&events);
  const auto step = [&] {
    {
      const PhaseScope forward(Phase::kForward);
      sleep_ms(4);
    }
    const PhaseScope backward(Phase::kBackward);
    sleep_ms(8);
  };
  step();  // before the first timed step
  EXPECT_EQ(events.read().steps, 0);
  const double before = book.seconds(Phase::kForward);
  events.next_step(true);
  step();
  events.next_step(false);
  const double forward = book.seconds(Phase::kForward) - before;
  step();
  events.next_step(true);
  const PhaseEvents::Times& times = events.read();
  EXPECT_EQ(times.steps, 1);
  EXPECT_NEAR(times.seconds[index_of(Phase::kForward)], forward, 1e-3) << "the same time by the book";
  EXPECT_GE(times.seconds[index_of(Phase::kBackward)], 8e-3);
  EXPECT_EQ(times.seconds[index_of(Phase::kInput)], 0);
  for (int i = 0; i < 20; ++i) {  // slots are used again
    step();
    events.next_step(true);
  }
  EXPECT_EQ(events.read().steps, 21);
}

TEST(PhaseEvents, StepsOfManyPassesAreTimed) {
  PhaseEvents events(c10::Device(c10::kCPU));
  for (int step = 0; step < 9; ++step) {
    events.next_step(true);
    for (int mark = 0; mark < 100 + 100 * step; ++mark) {
      events.entered(mark % 2 == 0 ? Phase::kForward : Phase::kBackward);
    }
  }
  events.next_step(false);
  EXPECT_EQ(events.read().steps, 9);
  EXPECT_FALSE(events.gave_up());
}

TEST(PhaseEvents, AStepWithTooManyMarksIsNotTimed) {
  PhaseEvents events(c10::Device(c10::kCPU));
  events.next_step(true);
  for (std::size_t i = 0; i < PhaseEvents::kMostMarks; ++i) {
    events.entered(Phase::kForward);
  }
  events.next_step(true);
  EXPECT_EQ(events.read().steps, 0);
  EXPECT_TRUE(events.gave_up());
  events.entered(Phase::kForward);
  events.next_step(false);
  EXPECT_EQ(events.read().steps, 1);
}

}  // namespace
}  // namespace stoker::device
