// SPDX-License-Identifier: Apache-2.0
// How much of the time each device of a trace worked, and on what: computing, communicating, copying, and their
// overlap. A device works while any of its streams does; a stream that waits for an event does not. Thread-safe: no
// state.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "stoker/observe/trace/facts/intervals.h"
#include "stoker/observe/trace/trace.h"

namespace stoker::observe::trace {

// What a device did at a moment, as a set of bits.
inline constexpr unsigned kComputing = 1, kCommunicating = 2, kCopying = 4;

struct DeviceUse {
  Intervals window;
  // ns of the window by what the device did then; [0]: nothing, [kComputing | kCopying]: both at once.
  std::array<std::int64_t, 8> by_state{};

  [[nodiscard]] std::int64_t total() const { return length(window); }
  [[nodiscard]] std::int64_t busy() const { return total() - idle(); }
  [[nodiscard]] std::int64_t idle() const { return by_state[0]; }
  // Time in which at least these bits were set.
  [[nodiscard]] std::int64_t time(unsigned bits) const;
};

// Times of a device's computing, communicating and copying.
using ByKind = std::array<Intervals, 3>;
[[nodiscard]] DeviceUse use_in(const Intervals& window, const ByKind& kinds);

struct StreamUse {
  int stream = 0;
  std::uint32_t track = 0;
  std::int64_t busy = 0;    // ns of the window
  std::int64_t alone = 0;   // of these, no other stream of the device worked
  std::int64_t pieces = 0;  // kernels, copies and fills
};

struct DeviceTime {
  int device = 0;
  DeviceUse whole;                  // from the begin of its first work to the end of its last
  DeviceUse steps;                  // of the steps' union; equal to `whole` if the program marks none
  std::vector<StreamUse> streams;   // in `whole`, by stream
  Intervals busy;                   // of all time
  ByKind kinds;                     // the same by what it did
  std::vector<std::uint32_t> work;  // indices of its kernels, copies and fills in Trace::events, by begin
};

// By device. steps: step_time(), or empty if the program marks none.
[[nodiscard]] std::vector<DeviceTime> devices_of(const Trace& trace, const Intervals& steps);

}  // namespace stoker::observe::trace
