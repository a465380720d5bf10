// SPDX-License-Identifier: Apache-2.0
// Threads that fill the rows of batches, several batches ahead, and hand over the batches in order. Independent of
// images and tensors. Used by ImageLoader. One consumer thread calls submit() and take(); other threads do the work.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace stoker::data {

class RowPool {
 public:
  // Fills row `row` of batch `ticket` (as submitted) on thread `worker`, 0 ... threads - 1. May throw.
  using Fill = std::function<void(std::int64_t ticket, std::int64_t row, int worker)>;

  // Calls a function with (first, last, worker) for ranges that together cover 0 ... rows - 1, and returns when all are
  // done. Runs on several threads, each with its own worker number, or only on the caller's as worker 0.
  using Range = std::function<void(std::int64_t first, std::int64_t last, int worker)>;
  using ShareOut = std::function<void(std::int64_t rows, const Range& range)>;

  // threads may be 0: then take() does the work through share_out, or on the caller's thread if share_out is empty.
  // ConfigError if the system cannot start the threads.
  RowPool(int threads, Fill fill, ShareOut share_out = {});
  RowPool(const RowPool&) = delete;
  RowPool& operator=(const RowPool&) = delete;
  // Joins without delay: rows that were not begun are dropped.
  ~RowPool();

  // Queues a batch of `rows` rows. Tickets are any numbers, unique among those not yet taken. first: it is taken before
  // all others, as the batch that was taken last and failed. If it throws, nothing is queued.
  void submit(std::int64_t ticket, std::int64_t rows, bool first = false);
  // Waits until the oldest batch is complete, removes it and returns its ticket. Throws the exception of its first
  // failing row: first by row number, not by time, so the error does not depend on the threads. The batch is removed
  // then, too. At least one batch must be submitted.
  std::int64_t take();
  // Sets the number of working threads, at least 1. Starts more if needed, as far as the system allows; surplus threads
  // rest after their current part. Only for pools made with at least 1 thread. Called by the consumer's thread.
  void set_threads(int threads);
  [[nodiscard]] int threads() const { return active_; }
  // Seconds that take() has waited, or worked if there are no threads. From any thread.
  [[nodiscard]] double wait_seconds() const { return wait_seconds_; }

 private:
  struct Work {
    std::int64_t ticket = 0;
    std::int64_t rows = 0;
    std::int64_t begun = 0;     // rows handed to workers
    std::int64_t finished = 0;  // rows filled or failed
    std::int64_t failed_row = 0;
    std::exception_ptr error;  // of failed_row
  };
  bool add_thread();
  void stop();
  void work(int worker);
  void fill_rows(Work& job, std::int64_t first, std::int64_t last, int worker);
  void fill_here(Work& job);

  Fill fill_;
  ShareOut share_out_;
  std::atomic<int> active_;               // threads at work; the others rest
  std::atomic<double> wait_seconds_ = 0;  // changed only by the consumer's thread
  std::mutex mutex_;                      // guards jobs_ and their fields, and changes of active_
  std::condition_variable has_work_, has_result_;
  std::deque<Work> jobs_;  // oldest first; references stay valid while entries are added and removed at the ends
  std::atomic<bool> stopping_ = false;
  std::vector<std::jthread> threads_;
};

}  // namespace stoker::data
