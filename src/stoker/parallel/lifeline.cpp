// SPDX-License-Identifier: Apache-2.0
#include "stoker/parallel/lifeline.h"

#include <condition_variable>
#include <utility>

#include "stoker/base/error.h"
#include "stoker/base/start_thread.h"

namespace stoker::parallel {
namespace {

using namespace std::chrono_literals;
constexpr auto kPeriod = 250ms;     // an error reaches all ranks within a second
constexpr auto kAcknowledged = 2s;  // longest wait of a rank that leaves
constexpr auto kNews = 1s;
constexpr const char* kAnyone = "left";  // set if any rank has left

std::string key_of(int rank) { return fmt::format("left/{}", rank); }
std::string heard_by(int rank) { return fmt::format("heard/{}", rank); }

}  // namespace

Lifeline::Lifeline(std::unique_ptr<Store> store, int rank, int ranks)
    : rank_(rank), ranks_(ranks), store_(std::move(store)) {
  thread_ = start_thread("parallel.lifeline", "hears of ranks that fail",
                         [this](const std::stop_token& stop) { watch(stop); });
}

void Lifeline::check(std::int64_t number) const {
  if (someone_left_) {
    if (const auto gone = departure(); gone && gone->collectives <= number) {
      throw_departure(*gone);
    }
  }
}

void Lifeline::begin(std::int64_t number) {
  check(number);
  newest_ = number;
  ++running_;
}

void Lifeline::leave(const Departure& departure) {
  if (left_.exchange(true)) {
    return;
  }
  try {
    const std::lock_guard lock(store_mutex_);
    store_->set(key_of(rank_), to_text(departure));
    store_->set(kAnyone, "1");
    store_->set(heard_by(rank_), "1");
    if (someone_left_) {  // and has waited for all
      return;
    }
    const auto until = std::chrono::steady_clock::now() + kAcknowledged;
    for (int other = 0; other < ranks_; ++other) {
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
      if (other != rank_ && left > 1ms) {
        static_cast<void>(store_->wait_for(heard_by(other), left));
      }
    }
  } catch (const RankError&) {  // nobody hears it: the others notice a lost rank
  }
}

std::optional<Departure> Lifeline::reason() const {
  const auto until = std::chrono::steady_clock::now() + kNews;
  while (!departure() && std::chrono::steady_clock::now() < until) {
    std::this_thread::sleep_for(20ms);
  }
  return departure();
}

std::optional<Departure> Lifeline::departure() const {
  const std::lock_guard lock(mutex_);
  return departure_;
}

void Lifeline::watch(const std::stop_token& stop) {
  std::condition_variable_any wake;
  std::mutex idle;
  std::unique_lock lock(idle);
  while (!wake.wait_for(lock, stop, kPeriod, [] { return false; }) && !stop.stop_requested()) {
    try {
      look();
    } catch (const RankError&) {  // the main threads notice a lost rank themselves
      return;
    }
  }
}

void Lifeline::look() {
  if (left_) {
    return;
  }
  std::optional<Departure> first;
  const std::lock_guard lock(store_mutex_);
  if (!store_->get(kAnyone)) {
    return;
  }
  for (int other = 0; other < ranks_; ++other) {
    const auto text = other == rank_ ? std::nullopt : store_->get(key_of(other));
    if (const auto gone = text ? std::optional(departure_from(*text)) : std::nullopt;
        gone && (!first || gone->collectives < first->collectives)) {
      first = gone;
    }
  }
  if (!first) {
    return;
  }
  {
    const std::lock_guard mine(mutex_);
    departure_ = first;
  }
  someone_left_ = true;
  const bool stuck = running_ > 0 && newest_ >= first->collectives;  // earlier ones may complete until the next look
  if (!heard_ && (running_ == 0 || (stuck && stuck_))) {
    store_->set(heard_by(rank_), "1");
    heard_ = true;
  }
  stuck_ = stuck;
}

}  // namespace stoker::parallel
