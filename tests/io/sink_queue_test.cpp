// SPDX-License-Identifier: Apache-2.0
#include "stoker/io/sink_queue.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace stoker::io {
namespace {

constexpr std::chrono::milliseconds kForGood{0};

// Items above 0 may be merged; items below 0 are kept.
struct Item {
  int value = 0;
  int merged = 0;
};

bool merge(Item& newest, Item& next) {
  if (newest.value < 0 || next.value < 0) {
    return false;
  }
  newest = {next.value, newest.merged + next.merged + 1};
  return true;
}

TEST(SinkQueue, MergesOnlyBeyondTheBoundAndOnlyNeighbours) {
  SinkQueue<Item> queue(2, merge);
  for (const int value : {1, 2, 3, 4, 5, -6, 7, 8}) {
    queue.push({{value, 0}});
  }
  queue.close();
  queue.push({{9, 0}});  // dropped
  std::vector<std::pair<int, int>> got;
  Item item;
  while (queue.pop(item, kForGood) == Wake::kValue) {
    got.emplace_back(item.value, item.merged);
  }
  EXPECT_EQ(got, (std::vector<std::pair<int, int>>{{1, 0}, {2, 0}, {5, 2}, {-6, 0}, {8, 1}}));
}

TEST(SinkQueue, TellsQuietFromClosed) {
  SinkQueue<Item> queue(2, nullptr);
  Item item;
  EXPECT_EQ(queue.pop(item, std::chrono::milliseconds(1)), Wake::kQuiet);
  queue.push({{1, 0}});
  queue.abandon();
  EXPECT_EQ(queue.pop(item, kForGood), Wake::kClosed);
  EXPECT_EQ(queue.size(), 0U);
}

TEST(SinkQueue, LosesNothingBetweenThreads) {
  constexpr int kCount = 20'000;
  SinkQueue<Item> queue(8, merge);
  int delivered = 0, merged = 0, kept = 0, last = 0;
  std::thread consumer([&] {
    Item item;
    while (queue.pop(item, kForGood) == Wake::kValue) {
      if (item.value < 0) {
        ++kept;
      } else {
        EXPECT_GT(item.value, last);
        last = item.value;
        ++delivered;
        merged += item.merged;
      }
    }
  });
  for (int i = 1; i <= kCount; ++i) {
    queue.push({{i % 10 == 0 ? -i : i, 0}});
  }
  queue.close();
  consumer.join();
  EXPECT_EQ(kept, kCount / 10);
  EXPECT_EQ(delivered + merged, kCount - kCount / 10);
}

}  // namespace
}  // namespace stoker::io
