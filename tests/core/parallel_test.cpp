// SPDX-License-Identifier: Apache-2.0
// Work is really shared among threads, each part is done once, and exceptions reach the caller.
#include "stoker/core/parallel.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <stdexcept>
#include <vector>

namespace stoker::core {
namespace {

class ParallelTest : public testing::Test {
 protected:
  ~ParallelTest() override { at::set_num_threads(before_); }

  const int before_ = at::get_num_threads();
};

// Whether two calls of work were under way at the same time; a call that stays alone gives up after a while.
bool two_meet() {
  std::mutex mutex;
  std::condition_variable other_came;
  int present = 0;
  bool met = false;
  parallel_for(2, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      std::unique_lock lock(mutex);
      met |= ++present == 2;
      other_came.notify_all();
      other_came.wait_for(lock, std::chrono::seconds(end - begin == 2 ? 0 : 60), [&] { return met; });
      --present;
    }
  });
  return met;
}

TEST_F(ParallelTest, ThreadsWorkAtOnce) {
  at::set_num_threads(2);
  EXPECT_TRUE(two_meet());
  at::set_num_threads(1);
  EXPECT_FALSE(two_meet());
}

TEST_F(ParallelTest, EachPartIsDoneOnce) {
  for (const int threads : {1, 2, 3}) {
    at::set_num_threads(threads);
    for (const std::int64_t count : {0, 1, 2, 3, 1000}) {
      std::vector<std::atomic<int>> done(static_cast<std::size_t>(count));
      parallel_for(count, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) {
          ++done[static_cast<std::size_t>(i)];
        }
      });
      for (const std::atomic<int>& each : done) {
        ASSERT_EQ(each, 1) << threads << " threads, " << count;
      }
    }
  }
}

TEST_F(ParallelTest, WhatIsThrownArrives) {
  at::set_num_threads(2);
  EXPECT_THROW(parallel_for(2,
                            [](std::int64_t, std::int64_t end) {
                              if (end == 2) {
                                throw std::out_of_range("the second half");
                              }
                            }),
               std::out_of_range);
}

TEST_F(ParallelTest, OneThreadHoldsForItsScopeAndItsThread) {
  at::set_num_threads(3);
  {
    const OneThread alone;
    EXPECT_EQ(at::get_num_threads(), 1);
    int calls = 0;
    parallel_for(8, [&](std::int64_t begin, std::int64_t end) {
      EXPECT_EQ(end - begin, 8);
      ++calls;
    });
    EXPECT_EQ(calls, 1);
  }
  EXPECT_EQ(at::get_num_threads(), 3);
}

}  // namespace
}  // namespace stoker::core
