// SPDX-License-Identifier: Apache-2.0
#include "stoker/data/load/row_pool.h"

#include <algorithm>
#include <system_error>
#include <utility>

#include "stoker/base/clock.h"
#include "stoker/base/error.h"
#include "stoker/base/start_thread.h"

namespace stoker::data {

RowPool::RowPool(int threads, Fill fill, ShareOut share_out)
    : fill_(std::move(fill)), share_out_(std::move(share_out)), active_(threads) {
  if (threads < 0 || threads > 1024) {
    fail<ConfigError>("data.row_pool", "threads must be 0 to 1024, got {}", threads);
  }
  try {
    while (static_cast<int>(threads_.size()) < threads) {
      if (!add_thread()) {
        fail<ConfigError>("data.row_pool", "the system can start only {} of {} threads; set threads={}",
                          threads_.size(), threads, threads_.size());
      }
    }
  } catch (...) {  // also without memory: the threads that were started would wait for work forever
    stop();
    throw;
  }
}

// False if the system starts no more threads.
bool RowPool::add_thread() {
  try {
    const auto worker = static_cast<int>(threads_.size());
    threads_.emplace_back([this, worker] {
      name_thread("loader");
      work(worker);
    });
    return true;
  } catch (const std::system_error&) {
    return false;
  }
}

void RowPool::set_threads(int threads) {
  if (threads < 1 || threads > 1024 || active_ == 0) {
    fail<ConfigError>("data.row_pool", "cannot change from {} to {} threads; both must be at least 1", active_.load(),
                      threads);
  }
  while (static_cast<int>(threads_.size()) < threads && add_thread()) {
  }
  {
    const std::lock_guard lock(mutex_);
    active_ = std::min(threads, static_cast<int>(threads_.size()));
  }
  has_work_.notify_all();
}

RowPool::~RowPool() { stop(); }

void RowPool::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  has_work_.notify_all();
  for (std::jthread& thread : threads_) {
    thread.join();
  }
}

void RowPool::submit(std::int64_t ticket, std::int64_t rows, bool first) {
  {
    const std::lock_guard lock(mutex_);
    Work& job = first ? jobs_.emplace_front() : jobs_.emplace_back();
    job.ticket = ticket;
    job.rows = rows;
  }
  has_work_.notify_all();
}

void RowPool::work(int worker) {
  std::unique_lock lock(mutex_);
  while (true) {
    const auto unfinished = [](const Work& job) { return job.begun < job.rows; };
    auto job = jobs_.end();
    has_work_.wait(lock, [&] {
      return stopping_ || (worker < active_ && (job = std::ranges::find_if(jobs_, unfinished)) != jobs_.end());
    });
    if (stopping_) {
      return;
    }
    // A part small enough that the threads finish a batch together, large enough that the lock is rarely taken.
    const std::int64_t share = std::max<std::int64_t>(1, job->rows / (std::int64_t{8} * active_));
    const std::int64_t first = job->begun;
    const std::int64_t last = job->begun = std::min(job->rows, first + share);
    Work& mine = *job;  // stays in place until all of its rows are finished
    lock.unlock();
    fill_rows(mine, first, last, worker);
    lock.lock();
  }
}

void RowPool::fill_rows(Work& job, std::int64_t first, std::int64_t last, int worker) {
  std::exception_ptr error;
  std::int64_t failed_row = 0;
  for (std::int64_t row = first; row < last && !stopping_; ++row) {
    try {
      fill_(job.ticket, row, worker);
    } catch (...) {
      if (!error) {
        error = std::current_exception();
        failed_row = row;
      }
    }
  }
  const std::lock_guard lock(mutex_);
  if (error && (!job.error || failed_row < job.failed_row)) {
    job.error = std::move(error);
    job.failed_row = failed_row;
  }
  job.finished += last - first;
  if (job.finished == job.rows) {
    has_result_.notify_one();
  }
}

// All rows on the caller's thread, or on those of share_out_.
void RowPool::fill_here(Work& job) {
  try {
    if (share_out_) {
      share_out_(job.rows,
                 [&](std::int64_t first, std::int64_t last, int worker) { fill_rows(job, first, last, worker); });
    } else {
      fill_rows(job, 0, job.rows, 0);
    }
  } catch (...) {  // no memory to share them out
    job.error = std::current_exception();
    job.finished = job.rows;
  }
}

std::int64_t RowPool::take() {
  std::unique_lock lock(mutex_);
  if (jobs_.empty()) {
    fail<ConfigError>("data.row_pool", "nothing was submitted");
  }
  Work& oldest = jobs_.front();
  const Stopwatch waited;
  if (active_ == 0) {
    lock.unlock();
    fill_here(oldest);
    wait_seconds_ = wait_seconds_ + waited.seconds();
    lock.lock();
  }
  if (oldest.finished < oldest.rows) {
    has_result_.wait(lock, [&] { return oldest.finished == oldest.rows; });
    wait_seconds_ = wait_seconds_ + waited.seconds();
  }
  const Work job = std::move(oldest);
  jobs_.pop_front();
  lock.unlock();
  if (job.error) {
    std::rethrow_exception(job.error);
  }
  return job.ticket;
}

}  // namespace stoker::data
