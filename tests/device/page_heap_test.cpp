// SPDX-License-Identifier: Apache-2.0
// Blocks of whole pages: none overlap, neighbours join, and what is free goes back to the kernel.
#include "stoker/device/page_heap.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <random>
#include <utility>
#include <vector>

namespace stoker::device {
namespace {

const std::size_t kPage = PageHeap::whole_pages(1);

char* mapped(std::size_t bytes) {
  auto* const block = static_cast<char*>(PageHeap::map(bytes));
  EXPECT_NE(block, nullptr);
  return block;
}

TEST(PageHeap, ABlockIsWholePages) {
  EXPECT_EQ(PageHeap::whole_pages(kPage), kPage);
  EXPECT_EQ(PageHeap::whole_pages(kPage + 1), 2 * kPage);
}

TEST(PageHeap, NeighboursJoinInEveryOrder) {
  for (const std::vector<std::size_t>& order :
       std::vector<std::vector<std::size_t>>{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}}) {
    PageHeap heap;
    char* const start = mapped(3 * kPage);
    for (const std::size_t page : order) {
      heap.free(start + page * kPage, kPage);
    }
    EXPECT_EQ(heap.free_bytes(), 3 * kPage);
    EXPECT_EQ(heap.reuse(3 * kPage), start);
    EXPECT_EQ(heap.free_bytes(), 0U);
    heap.free(start, 3 * kPage);
    heap.release();
  }
}

TEST(PageHeap, TakesTheSmallestRangeThatIsLargeEnough) {
  PageHeap heap;
  char* const start = mapped(9 * kPage);  // free: 4 pages, 2 pages, 1 page
  heap.free(start, 4 * kPage);
  heap.free(start + 5 * kPage, 2 * kPage);
  heap.free(start + 8 * kPage, kPage);
  EXPECT_EQ(heap.reuse(2 * kPage), start + 5 * kPage);
  EXPECT_EQ(heap.reuse(2 * kPage), start);
  EXPECT_EQ(heap.reuse(3 * kPage), nullptr);
  EXPECT_EQ(heap.free_bytes(), 3 * kPage);
}

// Against a slow twin: each block is filled with its own byte, which nobody else may change.
TEST(PageHeap, BlocksNeverOverlap) {
  struct Block {
    char* start;
    std::size_t bytes;
    char filling;
  };
  PageHeap heap;
  std::vector<Block> blocks;
  std::mt19937 random(1);
  std::size_t all = 0, held = 0;
  for (int turn = 0; turn < 4000; ++turn) {
    if (blocks.size() < 40 && random() % 2 == 0) {
      const std::size_t bytes = (1 + random() % 30) * kPage;
      auto* start = static_cast<char*>(heap.reuse(bytes));
      if (start == nullptr) {
        start = mapped(bytes);
        all += bytes;
      }
      blocks.push_back({start, bytes, static_cast<char>(turn)});
      std::memset(start, blocks.back().filling, bytes);
      held += bytes;
    } else if (!blocks.empty()) {
      std::swap(blocks[random() % blocks.size()], blocks.back());
      const Block block = blocks.back();
      blocks.pop_back();
      for (std::size_t at = 0; at < block.bytes; at += 512) {
        ASSERT_EQ(block.start[at], block.filling) << "turn " << turn;
      }
      heap.free(block.start, block.bytes);
      held -= block.bytes;
    }
    if (turn % 500 == 499) {
      heap.release();
      all = held;
    }
    ASSERT_EQ(heap.free_bytes(), all - held) << "turn " << turn;
  }
}

}  // namespace
}  // namespace stoker::device
