// SPDX-License-Identifier: Apache-2.0
// Slots are reused without allocation, outlive their ring, and never have two owners at a time.
#include "stoker/data/load/slot_ring.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <thread>
#include <vector>

namespace stoker::data {
namespace {

TEST(SlotRing, WhatIsLetGoComesBack) {
  SlotRing ring(1000, 2);
  std::shared_ptr<std::byte> first = ring.take(), second = ring.take();
  EXPECT_NE(first, second);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(first.get()) % 64, 0U);
  std::fill_n(first.get(), 1000, std::byte{1});
  const std::byte* const place = first.get();
  first.reset();
  EXPECT_EQ(ring.take().get(), place);
  for (int i = 0; i < 1000; ++i) {
    const std::shared_ptr<std::byte> one = ring.take();
    std::shared_ptr<std::byte> shared = one;  // as the fields of a batch share a slot
    EXPECT_EQ(one.get(), place);
  }
  EXPECT_EQ(ring.allocated(), 2U);
}

TEST(SlotRing, KeepsNoMoreThanAsked) {
  std::size_t held = 0;
  SlotRing ring(8, 2, [&](std::size_t bytes) {
    ++held;
    const SlotRing::Memory memory = SlotRing::pageable(bytes);
    return SlotRing::Memory(memory.get(), [&held, memory](void*) { --held; });
  });
  {
    std::vector<std::shared_ptr<std::byte>> many;
    for (int i = 0; i < 10; ++i) {
      many.push_back(ring.take());
    }
    EXPECT_EQ(held, 10U);
  }
  EXPECT_EQ(held, 2U);
}

TEST(SlotRing, SlotsOutliveTheRing) {
  std::shared_ptr<std::byte> slot;
  {
    SlotRing ring(3 << 20, 2);
    slot = ring.take();
  }
  std::fill_n(slot.get(), 3 << 20, std::byte{7});
  EXPECT_EQ(slot.get()[(3 << 20) - 1], std::byte{7});
}

// Each thread writes its mark into its slot and reads it back. This fails if two threads have the same slot.
TEST(SlotRing, NoSlotHasTwoOwners) {
  SlotRing ring(sizeof(int), 3);
  std::vector<int> wrong(4);
  {
    std::vector<std::jthread> threads;
    for (int mark = 0; mark < 4; ++mark) {
      threads.emplace_back([&, mark] {
        for (int i = 0; i < 2000; ++i) {
          const std::shared_ptr<std::byte> slot = ring.take();
          int* value = reinterpret_cast<int*>(slot.get());
          *value = mark;
          std::this_thread::yield();
          wrong[static_cast<std::size_t>(mark)] += *value != mark;
        }
      });
    }
  }
  EXPECT_EQ(wrong, std::vector<int>(4));
  EXPECT_GE(ring.allocated(), 3U);
}

}  // namespace
}  // namespace stoker::data
