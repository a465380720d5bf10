// SPDX-License-Identifier: Apache-2.0
// Rows of a batch on the operators' threads: every row is filled once. If the work is large enough, even the first
// batch uses several threads.
#include "stoker/data/load/image_loader_team.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

namespace stoker::data {
namespace {

class ImageLoaderTeamTest : public testing::Test {
 protected:
  ~ImageLoaderTeamTest() override { at::set_num_threads(before_); }

  const int before_ = at::get_num_threads();
};

// The workers that fill a batch of rows of 2 ms each. wait: from the second row on, a worker that is alone waits up to
// a minute for another one.
std::set<int> workers_of(const RowPool::ShareOut& share_out, bool wait) {
  std::mutex mutex;
  std::condition_variable other_came;
  std::set<int> workers;
  std::vector<int> done(8);
  share_out(8, [&](std::int64_t first, std::int64_t last, int worker) {
    for (std::int64_t row = first; row < last; ++row) {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      std::unique_lock lock(mutex);
      ++done[static_cast<std::size_t>(row)];
      workers.insert(worker);
      other_came.notify_all();
      if (wait && row > 0) {
        wait = other_came.wait_for(lock, std::chrono::seconds(60), [&] { return workers.size() > 1; });
      }
    }
  });
  EXPECT_EQ(done, std::vector<int>(8, 1));
  return workers;
}

TEST_F(ImageLoaderTeamTest, TheFirstBatchIsSharedToo) {
  at::set_num_threads(2);
  const RowPool::ShareOut share_out = on_operator_threads(2);
  EXPECT_EQ(workers_of(share_out, true), (std::set{0, 1}));
  EXPECT_EQ(workers_of(share_out, true), (std::set{0, 1}));
  EXPECT_EQ(workers_of(on_operator_threads(1), false), std::set{0});
}

TEST_F(ImageLoaderTeamTest, EachRowIsFilledOnceInBatchesOfAnySize) {
  at::set_num_threads(2);
  const RowPool::ShareOut share_out = on_operator_threads(2);
  for (const std::int64_t rows : {0, 1, 2, 100}) {
    std::vector<int> done(static_cast<std::size_t>(rows));
    for (int batch = 0; batch < 2; ++batch) {
      share_out(rows, [&](std::int64_t first, std::int64_t last, int) {
        for (std::int64_t row = first; row < last; ++row) {
          ++done[static_cast<std::size_t>(row)];
        }
      });
    }
    EXPECT_EQ(done, std::vector<int>(static_cast<std::size_t>(rows), 2));
  }
}

}  // namespace
}  // namespace stoker::data
