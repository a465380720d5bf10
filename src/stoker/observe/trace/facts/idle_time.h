// SPDX-License-Identifier: Apache-2.0
// Idle time with names: each stretch of time in which a device had nothing to do is followed from the work that ended
// it to the call that launched that work, and from there to what the host was doing meanwhile. Thread-safe: no state.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "stoker/observe/trace/facts/device_use.h"
#include "stoker/observe/trace/facts/host_work.h"

namespace stoker::observe::trace {

// A part of a gap with one cause.
struct IdlePiece {
  Interval time;
  Doing doing = Doing::kUnattributed;
  std::uint32_t event = kNone;  // the call or the work that names it
};

struct IdleGap {
  Interval time;
  std::uint32_t ended_by = kNone;    // the work that began then; kNone: the window ends
  std::uint32_t launch = kNone;      // the call that launched it
  std::size_t first = 0, count = 0;  // its pieces
};

struct IdleName {
  Doing doing = Doing::kUnattributed;
  std::string name;
  std::int64_t time = 0;  // ns
  std::int64_t times = 0;
};

struct IdleTime {
  std::int64_t window = 0;                       // ns
  std::int64_t total = 0;                        // of these idle
  std::array<std::int64_t, kDoings> by_doing{};  // sums to total
  std::vector<IdleName> names;                   // longest first
  std::vector<IdleGap> gaps;                     // by time
  std::vector<IdlePiece> pieces;                 // by time

  [[nodiscard]] std::int64_t of(Doing doing) const { return by_doing[static_cast<std::size_t>(doing)]; }
};

// Of a device in a window. A wait is charged to the producer of what was waited for: to the loader, not to the call
// that happened to block; to another thread's operators if the launching thread did nothing that was recorded.
[[nodiscard]] IdleTime idle_time(const Trace& trace, const Links& links, const HostWords& words,
                                 const DeviceTime& device, const Intervals& window);
// What the host did in all of the window, as seen from the main thread.
[[nodiscard]] std::vector<IdlePiece> host_pieces(const Trace& trace, const Links& links, const HostWords& words,
                                                 const Intervals& window);
// Of a program without a device: time of the main thread outside operators.
[[nodiscard]] IdleTime host_idle_time(const Trace& trace, const Links& links, const HostWords& words,
                                      const Intervals& window);

}  // namespace stoker::observe::trace
