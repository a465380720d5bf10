// SPDX-License-Identifier: Apache-2.0
// The last collectives of this rank: what they were, when they began, how long they took. Tells where a rank stands
// when another one waits for it, and is written to the run folder when ranks lose each other. Thread-safe; without
// torch.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "stoker/base/clock.h"

namespace stoker::parallel {

// Where a rank stands among its collectives.
struct Standing {
  std::int64_t newest = -1;    // number of the collective that it began last, counted from 0; -1: none yet
  bool waits = false;          // that one, or one before it, is not done
  double seconds = 0;          // since it began that one, or since that one was done
  std::string operation = {};  // of that one: "sum of 40 bytes"
};

class FlightRecord {
 public:
  static constexpr std::size_t kKept = 100;

  explicit FlightRecord(std::function<double()> clock = now_s) : clock_(std::move(clock)), changed_(clock_()) {}

  // A collective begins; operation: a literal, "sum". counts: all ranks take part, so it has a number. Returns its
  // place for end().
  std::int64_t begin(std::string_view operation, std::int64_t bytes, bool counts = true);
  // It is done, or has failed.
  void end(std::int64_t place, bool failed = false);

  // The number of the next collective of all ranks.
  [[nodiscard]] std::int64_t next() const;
  [[nodiscard]] Standing standing() const;
  // A line per collective, the oldest first.
  [[nodiscard]] std::string text() const;

 private:
  enum class State { kRuns, kDone, kFailed };
  struct Entry {
    std::string_view operation;
    std::int64_t bytes = 0, number = -1;
    double began = 0, seconds = 0;  // by clock_
    State state = State::kRuns;
  };
  [[nodiscard]] static std::string words(const Entry& entry);

  const std::function<double()> clock_;  // seconds
  mutable std::mutex mutex_;
  std::array<Entry, kKept> entries_;
  std::int64_t begun_ = 0, running_ = 0;
  std::int64_t next_ = 0;  // of all ranks
  double changed_;         // when one began or ended; at first: when the record did
};

}  // namespace stoker::parallel
