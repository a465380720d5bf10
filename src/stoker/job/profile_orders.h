// SPDX-License-Identifier: Apache-2.0
// The hand-over between someone who wants a profile and the training that takes it: an order, then its progress, then
// its end. Filled by RunSocket on its own thread, served by ProfileWatch on the loop's. Every member from any thread.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>

namespace stoker::job {

class ProfileOrders {
 public:
  struct Progress {
    enum class State { kWaiting, kRecording, kDone, kFailed } state = State::kWaiting;
    std::int64_t done = 0, steps = 0;  // while it records
    std::string text = {};             // kDone: path of the record in the run's folder; kFailed: why
    std::int64_t version = 0;          // of this value: each change counts one up
  };

  // False if one is being taken already.
  bool place(std::int64_t steps);
  // The newest progress of the order, once it is newer than `version`, or after some time.
  [[nodiscard]] Progress wait(std::int64_t version, double seconds);

  // For the loop: the steps of a new order. Costs nanoseconds without one.
  [[nodiscard]] std::optional<std::int64_t> take() {
    return placed_.load(std::memory_order_relaxed) ? take_placed() : std::nullopt;
  }
  void recorded(std::int64_t done, std::int64_t steps);
  void done(const std::string& record);
  // Also for an order that nobody has taken: the run ends. No effect without an order.
  void failed(const std::string& why);

 private:
  std::optional<std::int64_t> take_placed();
  void change(Progress::State state, const std::string& text);

  std::mutex mutex_;
  std::condition_variable changed_;
  std::atomic<bool> placed_ = false;
  bool open_ = false;  // placed, and neither done nor failed
  std::int64_t steps_ = 0;
  Progress progress_;
};

}  // namespace stoker::job
