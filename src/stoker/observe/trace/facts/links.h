// SPDX-License-Identifier: Apache-2.0
// Who called what in a trace: the calls of the host that launched the device's work, and the nesting of calls on each
// thread of the host. Made once per trace; read by its analyses. Read-only after construction.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "stoker/observe/trace/facts/intervals.h"
#include "stoker/observe/trace/trace.h"

namespace stoker::observe::trace {

// A stretch of time in which a thread was in one innermost call.
struct Stretch {
  Interval time;
  std::uint32_t event = kNone;  // index in Trace::events
};

// A thread of the host.
struct HostThread {
  std::uint32_t track = 0;
  std::vector<std::uint32_t> events;  // indices in Trace::events, by begin
  std::vector<Stretch> stretches;     // by time; time outside every call has none
  // Index of the first stretch that ends after `time`.
  [[nodiscard]] std::size_t stretch_at(std::int64_t time) const;
};

class Links {
 public:
  // The trace outlives the links.
  explicit Links(const Trace& trace);

  // The runtime call that caused work of a device; kNone if it was not recorded.
  [[nodiscard]] std::uint32_t launch_of(std::uint32_t event) const;
  // The runtime call with that correlation; kNone: none.
  [[nodiscard]] std::uint32_t call_with(std::int64_t correlation) const;
  // Work of devices that a call caused, by begin.
  [[nodiscard]] std::span<const std::uint32_t> work_of(std::uint32_t call) const;
  // The call that a call of the host was made in, on its thread; kNone: none. Ends beyond a caller's end are cut.
  [[nodiscard]] std::uint32_t caller(std::uint32_t event) const { return callers_[event]; }
  // The outermost operator that holds a call of the host, or the call itself; kNone: no operator.
  [[nodiscard]] std::uint32_t outermost_operator(std::uint32_t event) const { return outermost_[event]; }
  [[nodiscard]] const std::vector<HostThread>& threads() const { return threads_; }
  // The thread of a track; nullptr if it is a stream.
  [[nodiscard]] const HostThread* thread(std::uint32_t track) const;
  // Time of a call outside its inner calls, ns; 0 for events that are not calls of the host.
  [[nodiscard]] std::int64_t self_time(std::uint32_t event) const { return self_[event]; }
  // The thread that marks steps, else the one with most recorded calls; kNone: there are no calls.
  [[nodiscard]] std::uint32_t main_track() const { return main_track_; }

 private:
  void link(const Trace& trace);
  void nest(const Trace& trace, HostThread& thread);
  void choose_main(const Trace& trace);

  std::unordered_map<std::int64_t, std::uint32_t> calls_;  // by correlation
  std::vector<std::uint32_t> launches_, callers_, outermost_;
  std::vector<std::int64_t> self_;
  std::vector<std::uint32_t> work_, work_begin_;  // work_[work_begin_[e] .. work_begin_[e + 1]): of call e
  std::vector<HostThread> threads_;
  std::vector<std::int32_t> thread_of_track_;
  std::uint32_t main_track_ = kNone;
};

// A call of the host: an operator, a runtime call, a range of the program or a Python function.
[[nodiscard]] bool is_host_call(const Event& event);

}  // namespace stoker::observe::trace
