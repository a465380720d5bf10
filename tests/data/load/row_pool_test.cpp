// SPDX-License-Identifier: Apache-2.0
// Batches are complete and in order for every number of threads. An error is thrown at its own batch. A pool can
// be destroyed at any time.
#include "stoker/data/load/row_pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <stdexcept>
#include <thread>

#include "stoker/base/error.h"

namespace stoker::data {
namespace {

TEST(RowPool, FillsEveryRowOnceAndHandsOverInOrder) {
  for (const int threads : {0, 1, 2, 4}) {
    std::vector<std::vector<int>> slots(3, std::vector<int>(17));
    RowPool pool(threads, [&](std::int64_t ticket, std::int64_t row, int worker) {
      EXPECT_LT(worker, std::max(threads, 1));
      slots[static_cast<std::size_t>(ticket % 3)][static_cast<std::size_t>(row)] +=
          static_cast<int>(ticket * 100 + row);
    });
    for (std::int64_t ticket = 0; ticket < 3; ++ticket) {
      pool.submit(ticket, 17);
    }
    for (std::int64_t ticket = 0; ticket < 50; ++ticket) {
      ASSERT_EQ(pool.take(), ticket);
      std::vector<int>& slot = slots[static_cast<std::size_t>(ticket % 3)];
      for (int row = 0; row < 17; ++row) {
        ASSERT_EQ(slot[static_cast<std::size_t>(row)], ticket * 100 + row);
      }
      slot.assign(17, 0);
      pool.submit(ticket + 3, 17);
    }
  }
}

TEST(RowPool, TheFirstFailingRowsErrorComesAtItsBatch) {
  for (const int threads : {0, 1, 4}) {
    RowPool pool(threads, [](std::int64_t ticket, std::int64_t row, int) {
      if (ticket == 1 && row >= 5) {
        fail<DataError>("test", "row {}", row);
      }
    });
    for (std::int64_t ticket = 0; ticket < 3; ++ticket) {
      pool.submit(ticket, 40);
    }
    EXPECT_EQ(pool.take(), 0);
    try {
      pool.take();
      FAIL() << "no error with " << threads << " threads";
    } catch (const DataError& error) {
      EXPECT_STREQ(error.what(), "[test] row 5");
    }
    EXPECT_EQ(pool.take(), 2);
  }
}

// The caller may distribute the rows itself. The error is still that of the first failing row, and waiting is counted.
TEST(RowPool, RowsOfACallersBatchMayBeDealtOut) {
  const RowPool::ShareOut to_three = [](std::int64_t rows, const RowPool::Range& range) {
    std::vector<std::jthread> threads;
    for (int worker = 0; worker < 3; ++worker) {
      threads.emplace_back([&range, rows, worker] {
        for (std::int64_t row = worker; row < rows; row += 3) {
          range(row, row + 1, worker);
        }
      });
    }
  };
  std::vector<int> done(40);
  std::vector<int> by(3);
  RowPool pool(
      0,
      [&](std::int64_t ticket, std::int64_t row, int worker) {
        ++done[static_cast<std::size_t>(row)];
        ++by[static_cast<std::size_t>(worker)];
        if (ticket == 1 && row >= 5) {
          fail<DataError>("test", "row {}", row);
        }
      },
      to_three);
  for (std::int64_t ticket = 0; ticket < 3; ++ticket) {
    pool.submit(ticket, 40);
  }
  EXPECT_EQ(pool.take(), 0);
  EXPECT_THAT(done, ::testing::Each(1));
  EXPECT_THAT(by, ::testing::ElementsAre(14, 13, 13));
  EXPECT_GT(pool.wait_seconds(), 0);
  try {
    pool.take();
    FAIL() << "no error";
  } catch (const DataError& error) {
    EXPECT_STREQ(error.what(), "[test] row 5");
  }
  EXPECT_EQ(pool.take(), 2);
  EXPECT_THAT(done, ::testing::Each(3));
}

TEST(RowPool, ThreadsComeAndGoWhileItWorks) {
  std::vector<std::vector<int>> slots(3, std::vector<int>(17));
  RowPool pool(1, [&](std::int64_t ticket, std::int64_t row, int) {
    slots[static_cast<std::size_t>(ticket % 3)][static_cast<std::size_t>(row)] += static_cast<int>(ticket * 100 + row);
  });
  for (std::int64_t ticket = 0; ticket < 3; ++ticket) {
    pool.submit(ticket, 17);
  }
  for (std::int64_t ticket = 0; ticket < 300; ++ticket) {
    pool.set_threads(1 + static_cast<int>(ticket * 7 % 5));
    ASSERT_EQ(pool.take(), ticket);
    std::vector<int>& slot = slots[static_cast<std::size_t>(ticket % 3)];
    for (int row = 0; row < 17; ++row) {
      ASSERT_EQ(slot[static_cast<std::size_t>(row)], ticket * 100 + row);
    }
    slot.assign(17, 0);
    pool.submit(ticket + 3, 17);
  }
  EXPECT_THROW(pool.set_threads(0), ConfigError);
  RowPool none(0, [](std::int64_t, std::int64_t, int) {});
  EXPECT_THROW(none.set_threads(1), ConfigError);
}

// After the number of threads is reduced, no more rows are filled at a time than there are threads.
TEST(RowPool, RestingThreadsDoNothing) {
  std::atomic<int> inside = 0, most = 0;
  RowPool pool(4, [&](std::int64_t, std::int64_t, int) {
    const int now = ++inside;
    most = std::max(most.load(), now);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    --inside;
  });
  pool.submit(0, 40);
  pool.take();
  pool.set_threads(1);
  most = 0;
  pool.submit(1, 20);
  pool.take();
  EXPECT_EQ(most, 1);
  EXPECT_EQ(pool.threads(), 1);
}

TEST(RowPool, AnEmptyBatchIsDoneAtOnce) {
  for (const int threads : {0, 2}) {
    RowPool pool(threads, [](std::int64_t, std::int64_t, int) {});
    pool.submit(7, 0);
    pool.submit(8, 3);
    EXPECT_EQ(pool.take(), 7);
    EXPECT_EQ(pool.take(), 8);
    EXPECT_THROW(pool.take(), ConfigError);
  }
}

TEST(RowPool, EndsAtAnyMoment) {
  for (int round = 0; round < 100; ++round) {
    std::atomic<int> filled = 0;
    {
      RowPool pool(3, [&](std::int64_t, std::int64_t, int) { ++filled; });
      pool.submit(0, 1'000'000'000);  // would take minutes
      if (round % 2 == 0) {
        pool.submit(1, 10);
        while (filled == 0) {
          std::this_thread::yield();
        }
      }
    }
    EXPECT_LT(filled, 1'000'000'000);
  }
}

TEST(RowPool, RefusesAbsurdNumbersOfThreads) {
  const auto nothing = [](std::int64_t, std::int64_t, int) {};
  EXPECT_THROW(RowPool(-1, nothing), ConfigError);
  EXPECT_THROW(RowPool(100'000, nothing), ConfigError);
}

}  // namespace
}  // namespace stoker::data
