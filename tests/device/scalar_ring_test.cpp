// SPDX-License-Identifier: Apache-2.0
// A handle reads the values that were written, for as long as it lives. Writing needs no allocation and no operator per
// step.
#include "stoker/device/scalar_ring.h"

#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <cmath>
#include <condition_variable>
#include <deque>
#include <limits>
#include <mutex>
#include <set>
#include <thread>

#include "stoker/base/error.h"
#include "support/dispatch_counter.h"
#include "support/fault_allocator.h"

namespace stoker::device {
namespace {

using Handle = std::shared_ptr<const core::PendingScalars>;
const at::Device kCpu(at::kCPU);

// A step's values in place: (step, -step).
void fill(at::Tensor& values, int step) {
  auto* data = values.mutable_data_ptr<float>();
  data[0] = static_cast<float>(step);
  data[1] = static_cast<float>(-step);
}

TEST(ScalarRing, BringsValuesNanIncluded) {
  ScalarRing ring(kCpu, 3);
  const Handle handle = ring.write(at::tensor({1.5F, std::numeric_limits<float>::quiet_NaN(), -0.25F}));
  const core::Scalars scalars = handle->read();
  EXPECT_EQ(scalars.count, 3U);
  EXPECT_EQ(scalars.values[0], 1.5F);
  EXPECT_TRUE(std::isnan(scalars.values[1]));
  EXPECT_EQ(scalars.values[2], -0.25F);
}

TEST(ScalarRing, HeldHandlesStayRightAndTheRingGrowsOnlyThen) {
  ScalarRing ring(kCpu, 2, 4);
  at::Tensor values = at::zeros({2});
  std::deque<std::pair<int, Handle>> held;
  for (int step = 0; step < 100; ++step) {
    fill(values, step);
    held.emplace_back(step, ring.write(values));
    if (held.size() > 4) {
      held.pop_front();
    }
    for (const auto& [written, handle] : held) {
      ASSERT_EQ(handle->read().values[0], static_cast<float>(written)) << "at step " << step;
      ASSERT_EQ(handle->read().values[1], static_cast<float>(-written));
    }
  }
  EXPECT_EQ(ring.slots(), 5U);  // four are held while the fifth is written
}

TEST(ScalarRing, NothingIsAllocatedAndNoOperatorRunsPerStep) {
  at::Tensor values = at::zeros({2});
  ScalarRing ring(kCpu, 2, 8);
  const testing::FaultAllocator allocator;
  const testing::DispatchCounter operators;
  const std::int64_t before = allocator.allocations();
  std::set<const core::PendingScalars*> handles;
  for (int step = 0; step < 2000; ++step) {
    fill(values, step);
    const Handle handle = ring.write(values);
    handles.insert(handle.get());
    ASSERT_EQ(handle->read().values[0], static_cast<float>(step));
  }
  EXPECT_EQ(allocator.allocations(), before);
  EXPECT_EQ(operators.total(), 0);
  EXPECT_EQ(handles.size(), 8U);
  EXPECT_EQ(ring.slots(), 8U);
}

TEST(ScalarRing, AnotherThreadReadsWhatThisOneWrote) {
  constexpr int kSteps = 20'000;
  ScalarRing ring(kCpu, 2, 4);
  std::deque<Handle> queue;
  std::mutex mutex;
  std::condition_variable changed;
  int wrong = 0;
  std::jthread reader([&] {
    for (int step = 0; step < kSteps; ++step) {
      std::unique_lock lock(mutex);
      changed.wait(lock, [&] { return !queue.empty(); });
      const Handle handle = std::move(queue.front());
      queue.pop_front();
      lock.unlock();
      changed.notify_one();
      const core::Scalars scalars = handle->read();
      const auto value = static_cast<float>(step);
      wrong += scalars.values[0] != value || scalars.values[1] != -value ? 1 : 0;
    }
  });
  at::Tensor values = at::zeros({2});
  for (int step = 0; step < kSteps; ++step) {
    fill(values, step);
    Handle handle = ring.write(values);
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return queue.size() < 3; });
    queue.push_back(std::move(handle));
    lock.unlock();
    changed.notify_one();
  }
  reader.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_LE(ring.slots(), 6U);  // 3 queued, 1 being read, 1 about to be queued, 1 being written
}

TEST(ScalarRing, HandlesOutliveTheRing) {
  Handle handle;
  {
    ScalarRing ring(kCpu, 1);
    handle = ring.write(at::full({1}, 7.0));
  }
  EXPECT_EQ(handle->read().values[0], 7.0F);
}

TEST(ScalarRing, RefusesWrongShapesAndTypes) {
  EXPECT_THROW(ScalarRing(kCpu, 0), ConfigError);
  EXPECT_THROW(ScalarRing(kCpu, core::kMaxScalars + 1), ConfigError);
  EXPECT_THROW(ScalarRing(kCpu, 1, 0), ConfigError);
  ScalarRing ring(kCpu, 2);
  EXPECT_THROW((void)ring.write({}), ConfigError);
  EXPECT_THROW((void)ring.write(at::zeros({3})), ConfigError);
  EXPECT_THROW((void)ring.write(at::zeros({1, 2})), ConfigError);
  EXPECT_THROW((void)ring.write(at::zeros({2}, at::kDouble)), ConfigError);
  EXPECT_THROW((void)ring.write(at::zeros({4}).slice(0, 0, 4, 2)), ConfigError);
  EXPECT_THROW((void)ring.write(at::zeros({2}).requires_grad_()), ConfigError);
  EXPECT_THROW((void)ring.write(at::zeros({2}, at::device(at::kMeta))), ConfigError);
}

}  // namespace
}  // namespace stoker::device
