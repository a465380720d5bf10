// SPDX-License-Identifier: Apache-2.0
#include "stoker/observe/trace/facts/links.h"

#include <algorithm>

#include "stoker/observe/trace/categories.h"

namespace stoker::observe::trace {

bool is_host_call(const Event& event) {
  switch (event.kind) {
    case Kind::kOperator:
    case Kind::kRuntime:
    case Kind::kAnnotation:
    case Kind::kPython: return true;
    default: return false;
  }
}

std::size_t HostThread::stretch_at(std::int64_t time) const {
  const auto after = std::ranges::upper_bound(stretches, time, {}, [](const Stretch& each) { return each.time.end; });
  return static_cast<std::size_t>(after - stretches.begin());
}

Links::Links(const Trace& trace)
    : launches_(trace.events.size(), kNone),
      callers_(trace.events.size(), kNone),
      outermost_(trace.events.size(), kNone),
      self_(trace.events.size(), 0) {
  link(trace);
  thread_of_track_.assign(trace.tracks.size(), -1);
  for (std::uint32_t i = 0; i < trace.events.size(); ++i) {
    if (!is_host_call(trace.events[i])) {
      continue;
    }
    std::int32_t& number = thread_of_track_[trace.events[i].track];
    if (number < 0) {
      number = static_cast<std::int32_t>(threads_.size());
      threads_.push_back({.track = trace.events[i].track, .events = {}, .stretches = {}});
    }
    threads_[static_cast<std::size_t>(number)].events.push_back(i);
  }
  for (HostThread& thread : threads_) {
    nest(trace, thread);
  }
  choose_main(trace);
}

void Links::link(const Trace& trace) {
  for (std::uint32_t i = 0; i < trace.events.size(); ++i) {
    if (trace.events[i].kind == Kind::kRuntime && trace.events[i].correlation >= 0) {
      calls_.emplace(trace.events[i].correlation, i);
    }
  }
  work_begin_.assign(trace.events.size() + 1, 0);
  for (std::uint32_t i = 0; i < trace.events.size(); ++i) {
    const Event& event = trace.events[i];
    if ((event.on_device() || event.kind == Kind::kSync) && event.correlation >= 0) {
      if (const std::uint32_t call = call_with(event.correlation); call != kNone) {
        launches_[i] = call;
        ++work_begin_[call + 1];
      }
    }
  }
  for (std::size_t i = 0; i < trace.events.size(); ++i) {
    work_begin_[i + 1] += work_begin_[i];
  }
  work_.resize(work_begin_.back());
  std::vector<std::uint32_t> next(work_begin_.begin(), work_begin_.end() - 1);
  for (std::uint32_t i = 0; i < trace.events.size(); ++i) {
    if (launches_[i] != kNone) {
      work_[next[launches_[i]]++] = i;
    }
  }
}

// Walks a thread's calls in order of their begins with a stack of those that are open.
void Links::nest(const Trace& trace, HostThread& thread) {
  struct Open {
    std::uint32_t event;
    std::int64_t end;
  };
  thread.stretches.reserve(2 * thread.events.size());
  std::vector<Open> stack;
  std::int64_t now = 0;
  const auto advance = [&](std::int64_t to) {  // the innermost open call lasts from now to `to`
    if (!stack.empty() && now < to) {
      self_[stack.back().event] += to - now;
      if (!thread.stretches.empty() && thread.stretches.back().event == stack.back().event &&
          thread.stretches.back().time.end == now) {
        thread.stretches.back().time.end = to;
      } else {
        thread.stretches.push_back({{now, to}, stack.back().event});
      }
    }
    now = std::max(now, to);
  };
  const auto close_until = [&](std::int64_t time) {
    while (!stack.empty() && stack.back().end <= time) {
      advance(stack.back().end);
      stack.pop_back();
    }
  };
  for (const std::uint32_t i : thread.events) {
    const Event& event = trace.events[i];
    close_until(event.begin);
    if (stack.empty()) {
      now = event.begin;
    } else {
      advance(event.begin);
      callers_[i] = stack.back().event;
    }
    const std::uint32_t above = callers_[i] == kNone ? kNone : outermost_[callers_[i]];
    outermost_[i] = above == kNone && event.kind == Kind::kOperator ? i : above;
    stack.push_back({i, stack.empty() ? event.end : std::min(event.end, stack.back().end)});
  }
  close_until(INT64_MAX);
  thread.stretches.shrink_to_fit();
}

void Links::choose_main(const Trace& trace) {
  std::size_t most = 0;
  bool marked = false;
  for (const HostThread& thread : threads_) {
    const bool marks = std::ranges::any_of(thread.events, [&](std::uint32_t i) {
      return trace.events[i].kind == Kind::kAnnotation && is_step(trace.name(trace.events[i]));
    });
    if ((marks && !marked) || (marks == marked && thread.events.size() > most)) {
      main_track_ = thread.track;
      most = thread.events.size();
      marked = marks;
    }
  }
}

std::uint32_t Links::launch_of(std::uint32_t event) const { return launches_[event]; }

std::uint32_t Links::call_with(std::int64_t correlation) const {
  const auto found = calls_.find(correlation);
  return found == calls_.end() ? kNone : found->second;
}

std::span<const std::uint32_t> Links::work_of(std::uint32_t call) const {
  return std::span(work_).subspan(work_begin_[call], work_begin_[call + 1] - work_begin_[call]);
}

const HostThread* Links::thread(std::uint32_t track) const {
  const std::int32_t number = thread_of_track_[track];
  return number < 0 ? nullptr : &threads_[static_cast<std::size_t>(number)];
}

}  // namespace stoker::observe::trace
