// SPDX-License-Identifier: Apache-2.0
// Device times of phases on a real GPU: the host runs ahead, nothing waits, and the time of the matrix products is
// booked to the phase that started them. Prints a skip message without a GPU.
#include <ATen/ops/mm.h>
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

#include "stoker/base/clock.h"
#include "stoker/core/phase.h"
#include "stoker/device/phase_events.h"
#include "support/gpu.h"

namespace stoker::device {
namespace {

using core::index_of;
using core::Phase;
using core::PhaseScope;

TEST(GpuPhaseEvents, TellDeviceTimeWithoutWaiting) {
  STOKER_NEEDS_GPU();
  const c10::Device gpu(c10::DeviceType::CUDA, 0);
  const Backend& backend = backend_for(gpu);
  const at::Tensor matrix = at::ones({4096, 4096}, at::device(gpu));
  const auto multiply = [&](int times) {
    for (int i = 0; i < times; ++i) {
      (void)at::mm(matrix, matrix);
    }
  };
  multiply(3);
  backend.synchronize(gpu);

  PhaseEvents events(gpu);
  core::PhaseBook book;
  book.open();
  book.listen(&events);
  const Stopwatch whole;
  events.next_step(true);
  {
    const PhaseScope forward(Phase::kForward);
    multiply(10);
  }
  {
    const PhaseScope backward(Phase::kBackward);
    multiply(40);
  }
  events.next_step(false);
  book.settle();
  EXPECT_EQ(events.read().steps, 0) << "the device has 50 products to do; nothing may have waited for them";
  const double host = book.seconds(Phase::kBackward);
  backend.synchronize(gpu);
  const double wall = whole.seconds();
  const PhaseEvents::Times& times = events.read();
  ASSERT_EQ(times.steps, 1);
  const double forward = times.seconds[index_of(Phase::kForward)], backward = times.seconds[index_of(Phase::kBackward)];
  EXPECT_GT(backward, host) << "the host only starts them";
  EXPECT_NEAR(backward / forward, 4, 1);
  EXPECT_LE(forward + backward, wall);
  EXPECT_GT(forward + backward, wall / 2);
}

}  // namespace
}  // namespace stoker::device
