// SPDX-License-Identifier: Apache-2.0
#include "stoker/job/profile_orders.h"

#include <chrono>

namespace stoker::job {

bool ProfileOrders::place(std::int64_t steps) {
  const std::lock_guard lock(mutex_);
  if (open_) {
    return false;
  }
  open_ = true;
  steps_ = steps;
  progress_ = {.version = progress_.version + 1};
  placed_ = true;
  return true;
}

ProfileOrders::Progress ProfileOrders::wait(std::int64_t version, double seconds) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, std::chrono::duration<double>(seconds), [&] { return progress_.version > version; });
  return progress_;
}

std::optional<std::int64_t> ProfileOrders::take_placed() {
  const std::lock_guard lock(mutex_);
  return placed_.exchange(false) ? std::optional(steps_) : std::nullopt;
}

void ProfileOrders::recorded(std::int64_t done, std::int64_t steps) {
  const std::lock_guard lock(mutex_);
  if (open_) {
    progress_ = {Progress::State::kRecording, done, steps, "", progress_.version + 1};
    changed_.notify_all();
  }
}

void ProfileOrders::done(const std::string& record) { change(Progress::State::kDone, record); }
void ProfileOrders::failed(const std::string& why) { change(Progress::State::kFailed, why); }

void ProfileOrders::change(Progress::State state, const std::string& text) {
  const std::lock_guard lock(mutex_);
  if (open_) {
    open_ = false;
    placed_ = false;
    progress_ = {state, progress_.done, progress_.steps, text, progress_.version + 1};
    changed_.notify_all();
  }
}

}  // namespace stoker::job
