// SPDX-License-Identifier: Apache-2.0
// Every value arrives once and in order, no thread waits forever, and the queue never exceeds its capacity.
#include "stoker/base/bounded_queue.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "support/failing_new.h"

namespace stoker {
namespace {

TEST(BoundedQueue, KeepsTheOrderOfEachProducer) {
  BoundedQueue<std::unique_ptr<int>> queue(3);
  constexpr int kEach = 2000, kProducers = 3, kConsumers = 2;
  std::vector<std::vector<int>> got(kConsumers);
  {
    std::vector<std::jthread> consumers;
    for (int i = 0; i < kConsumers; ++i) {
      consumers.emplace_back([&, i] {
        while (auto value = queue.pop()) {
          got[static_cast<std::size_t>(i)].push_back(**value);
        }
      });
    }
    {
      std::vector<std::jthread> producers;
      for (int i = 0; i < kProducers; ++i) {
        producers.emplace_back([&, i] {
          for (int n = 0; n < kEach; ++n) {
            EXPECT_TRUE(queue.push(std::make_unique<int>(i * kEach + n)));
          }
        });
      }
    }
    queue.close();
  }
  std::vector<int> all;
  for (const std::vector<int>& some : got) {
    for (int producer = 0; producer < kProducers; ++producer) {
      std::vector<int> of_one;
      std::ranges::copy_if(some, std::back_inserter(of_one), [&](int value) { return value / kEach == producer; });
      EXPECT_TRUE(std::ranges::is_sorted(of_one));
    }
    all.insert(all.end(), some.begin(), some.end());
  }
  std::ranges::sort(all);
  ASSERT_EQ(all.size(), static_cast<std::size_t>(kEach * kProducers));
  for (int i = 0; i < kEach * kProducers; ++i) {
    ASSERT_EQ(all[static_cast<std::size_t>(i)], i);
  }
}

TEST(BoundedQueue, AProducerWaitsForRoom) {
  BoundedQueue<int> queue(2);
  std::atomic<int> pushed = 0;
  std::jthread producer([&] {
    for (int i = 0; i < 10; ++i) {
      EXPECT_TRUE(queue.push(int(i)));
      ++pushed;
    }
  });
  for (int popped = 0; popped < 10; ++popped) {
    EXPECT_EQ(queue.pop(), popped);
    EXPECT_LE(pushed, popped + 1 + 2 + 1);  // values popped, values inside, and the one being counted
  }
}

TEST(BoundedQueue, ClosingWakesEveryone) {
  constexpr int kEach = 2;
  BoundedQueue<std::unique_ptr<int>> full(1), empty(1);
  EXPECT_TRUE(full.push(std::make_unique<int>(7)));
  std::vector<std::unique_ptr<int>> values;
  for (int i = 0; i < kEach; ++i) {
    values.push_back(std::make_unique<int>(i));
  }
  std::atomic<int> begun = 0, taken = 0, got = 0;
  ::alarm(120);  // a thread that is not woken would wait forever
  {
    std::vector<std::jthread> waiting;
    for (int i = 0; i < kEach; ++i) {
      waiting.emplace_back([&, i] {
        ++begun;
        taken += full.push(std::move(values[static_cast<std::size_t>(i)])) ? 1 : 0;
      });
      waiting.emplace_back([&] {
        ++begun;
        got += empty.pop() ? 1 : 0;
      });
    }
    while (begun < 2 * kEach) {
      std::this_thread::yield();
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(50));  // long enough, most likely, for all of them to wait
    full.close();
    empty.close();
  }
  ::alarm(0);
  EXPECT_EQ(taken, 0);
  EXPECT_EQ(got, 0);
  for (int i = 0; i < kEach; ++i) {  // what was not taken stays with the caller
    const std::unique_ptr<int>& value = values[static_cast<std::size_t>(i)];
    ASSERT_NE(value, nullptr);
    EXPECT_EQ(*value, i);
  }
  const auto inside = full.pop();
  ASSERT_TRUE(inside.has_value());
  EXPECT_EQ(**inside, 7);
  EXPECT_FALSE(full.pop().has_value());
  EXPECT_FALSE(full.push(std::make_unique<int>(9)));
}

// An error can pass through the queue when no memory is left.
TEST(BoundedQueue, HasItsMemoryFromTheStart) {
  BoundedQueue<int> queue(1000);
  bool taken = true;
  {
    const testing::NoMemory none;
    for (int round = 0; round < 3; ++round) {
      for (int i = 0; i < 1000; ++i) {
        taken = taken && queue.push(round * i);
      }
      for (int i = 0; i < 1000; ++i) {
        taken = taken && queue.pop() == round * i;
      }
    }
  }
  EXPECT_TRUE(taken);
}

TEST(BoundedQueue, NeedsRoomForOne) { EXPECT_THROW(BoundedQueue<int>(0), ConfigError); }

}  // namespace
}  // namespace stoker
