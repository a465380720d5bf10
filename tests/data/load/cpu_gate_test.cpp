// SPDX-License-Identifier: Apache-2.0
// At most the given number of threads are in the gate at a time, also after some leave by an exception. The gate also
// admits that many.
#include "stoker/data/load/cpu_gate.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <optional>
#include <stdexcept>
#include <thread>
#include <vector>

namespace stoker::data {
namespace {

using Pass = CpuGate::Pass;

// If a pass is never returned, other threads wait forever; then the signal ends the program.
class CpuGateTest : public ::testing::Test {
 protected:
  CpuGateTest() { ::alarm(120); }
  ~CpuGateTest() override { ::alarm(0); }
};

TEST_F(CpuGateTest, NoMoreThanMostComputeAtATimeAndNoneStaysBehind) {
  constexpr int kMost = 3;
  CpuGate gate(kMost);
  std::atomic<int> inside = 0, highest = 0, thrown = 0;
  const auto compute = [&](int i) {
    const Pass pass(&gate);
    const int now = ++inside;
    for (int before = highest; before < now && !highest.compare_exchange_weak(before, now);) {
    }
    std::this_thread::yield();  // lets other threads arrive while this one is inside
    --inside;
    if (i % 4 == 0) {
      throw std::runtime_error("a damaged image");
    }
  };
  {
    std::vector<std::jthread> threads;
    for (int thread = 0; thread < 8; ++thread) {
      threads.emplace_back([&] {
        for (int i = 0; i < 500; ++i) {
          try {
            compute(i);
          } catch (const std::runtime_error&) {
            ++thrown;
          }
        }
      });
    }
  }
  EXPECT_LE(highest, kMost);
  EXPECT_EQ(thrown, 8 * 125);
  std::vector<std::optional<Pass>> all(kMost);  // there is room for as many as at the start
  for (std::optional<Pass>& each : all) {
    each.emplace(&gate);
  }
}

TEST_F(CpuGateTest, WhoComesToAFullGateWaitsForTheFirstToLeave) {
  CpuGate gate(2);
  std::optional<Pass> one(&gate);
  const Pass other(&gate);
  std::atomic<bool> came = false;
  const std::jthread third([&] {
    const Pass pass(&gate);
    came = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_FALSE(came);
  one.reset();
  while (!came) {
    std::this_thread::yield();
  }
}

TEST_F(CpuGateTest, WithoutAGateNobodyWaits) { const Pass one(nullptr), other(nullptr); }

}  // namespace
}  // namespace stoker::data
