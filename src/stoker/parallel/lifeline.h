// SPDX-License-Identifier: Apache-2.0
// Tells all ranks that one of them leaves before the end, by the store, while their main threads compute or wait for
// each other. Used by ProcessGroup. Every member may be called from any thread.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "stoker/parallel/departure.h"
#include "stoker/parallel/store.h"

namespace stoker::parallel {

class Lifeline {
 public:
  // Looks into the store four times a second.
  Lifeline(std::unique_ptr<Store> store, int rank, int ranks);

  // Throws the error of a rank that left before collective number `number`, counted from 0.
  void check(std::int64_t number) const;
  // The same, and this rank starts that collective.
  void begin(std::int64_t number);
  // One collective is done, or has failed.
  void end() { --running_; }
  // This rank leaves. Returns when its connections may be closed: the others have completed all that it took part in,
  // or two seconds are over. What they have begun since then ends by that closing.
  void leave(const Departure& departure);
  // After a collective failed: why, if a rank says so within a second.
  [[nodiscard]] std::optional<Departure> reason() const;

 private:
  void watch(const std::stop_token& stop);
  void look();
  [[nodiscard]] std::optional<Departure> departure() const;

  const int rank_, ranks_;
  std::mutex store_mutex_;
  std::unique_ptr<Store> store_;
  mutable std::mutex mutex_;
  std::optional<Departure> departure_;
  std::atomic<bool> someone_left_{false};
  std::atomic<std::int64_t> newest_{-1};  // number of the collective that was started last
  std::atomic<int> running_{0};           // collectives that were started and are not done
  std::atomic<bool> left_{false};         // this rank
  bool heard_ = false, stuck_ = false;    // by the thread: it has said so; a collective was stuck at its last look
  std::jthread thread_;
};

}  // namespace stoker::parallel
