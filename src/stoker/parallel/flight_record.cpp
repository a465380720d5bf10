// SPDX-License-Identifier: Apache-2.0
#include "stoker/parallel/flight_record.h"

#include <algorithm>

#include "stoker/base/fmt.h"

namespace stoker::parallel {

std::int64_t FlightRecord::begin(std::string_view operation, std::int64_t bytes, bool counts) {
  const std::lock_guard lock(mutex_);
  const std::int64_t place = begun_++;
  next_ += counts ? 1 : 0;
  ++running_;
  changed_ = clock_();
  Entry& entry = entries_[static_cast<std::size_t>(place) % kKept];
  entry = {};
  entry.operation = operation;
  entry.bytes = bytes;
  entry.number = counts ? next_ - 1 : -1;
  entry.began = changed_;
  return place;
}

void FlightRecord::end(std::int64_t place, bool failed) {
  const std::lock_guard lock(mutex_);
  --running_;
  changed_ = clock_();
  if (begun_ - place > static_cast<std::int64_t>(kKept)) {  // no longer kept
    return;
  }
  Entry& entry = entries_[static_cast<std::size_t>(place) % kKept];
  entry.seconds = changed_ - entry.began;
  entry.state = failed ? State::kFailed : State::kDone;
}

std::int64_t FlightRecord::next() const {
  const std::lock_guard lock(mutex_);
  return next_;
}

Standing FlightRecord::standing() const {
  const std::lock_guard lock(mutex_);
  Standing standing{.newest = next_ - 1, .waits = running_ > 0, .seconds = clock_() - changed_};
  if (begun_ > 0) {
    standing.operation = words(entries_[static_cast<std::size_t>(begun_ - 1) % kKept]);
  }
  return standing;
}

std::string FlightRecord::words(const Entry& entry) {
  return entry.bytes < 0 ? std::string(entry.operation) : fmt::format("{} of {} bytes", entry.operation, entry.bytes);
}

std::string FlightRecord::text() const {
  const std::lock_guard lock(mutex_);
  const double now = clock_();
  std::string text =
      fmt::format("{:>8}  {:>13}  {:>12}  {:<6}  what\n", "number", "began s ago", "took seconds", "state");
  for (std::int64_t place = std::max<std::int64_t>(0, begun_ - static_cast<std::int64_t>(kKept)); place < begun_;
       ++place) {
    const Entry& entry = entries_[static_cast<std::size_t>(place) % kKept];
    const std::string number = entry.number < 0 ? "" : std::to_string(entry.number);
    const bool runs = entry.state == State::kRuns;
    const char* const state = runs ? "runs" : entry.state == State::kFailed ? "failed" : "done";
    text += fmt::format("{:>8}  {:>13.6f}  {:>12.6f}  {:<6}  {}\n", number, now - entry.began,
                        runs ? now - entry.began : entry.seconds, state, words(entry));
  }
  return text;
}

}  // namespace stoker::parallel
