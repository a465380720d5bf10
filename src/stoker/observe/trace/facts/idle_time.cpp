// SPDX-License-Identifier: Apache-2.0
#include "stoker/observe/trace/facts/idle_time.h"

#include <algorithm>
#include <map>

namespace stoker::observe::trace {
namespace {

constexpr std::size_t kMostThreads = 8;  // that are asked what the host was doing

// Follows gaps to what the host was doing. Threads are asked in an order: the one that launched, the main thread, the
// others. One that did nothing recorded passes the question on.
class GapWalk {
 public:
  GapWalk(const Trace& trace, const Links& links, const HostWords& words, IdleTime& idle)
      : trace_(trace), links_(links), words_(words), idle_(idle) {}

  void add(Interval time, Doing doing, std::uint32_t event) {
    if (time.begin >= time.end) {
      return;
    }
    const bool same = idle_.pieces.size() > first_ && idle_.pieces.back().doing == doing &&
                      idle_.pieces.back().event == event && idle_.pieces.back().time.end == time.begin;
    if (same) {
      idle_.pieces.back().time.end = time.end;
    } else {
      idle_.pieces.push_back({time, doing, event});
    }
  }

  void begin_gap() { first_ = idle_.pieces.size(); }
  void end_gap(IdleGap gap) {
    gap.first = first_;
    gap.count = idle_.pieces.size() - first_;
    idle_.gaps.push_back(gap);
  }

  // What the host did while the device waited for a call of the thread of `track`; kNone: for any.
  void walk(Interval time, std::uint32_t track) {
    threads_.clear();
    const auto ask = [&](const HostThread* thread) {
      if (thread != nullptr && std::ranges::find(threads_, thread) == threads_.end() &&
          threads_.size() < kMostThreads) {
        threads_.push_back(thread);
      }
    };
    ask(track == kNone ? nullptr : links_.thread(track));
    ask(links_.main_track() == kNone ? nullptr : links_.thread(links_.main_track()));
    trusted_ = threads_.size();
    for (const HostThread& each : links_.threads()) {
      if (!threads_.empty() && trace_.tracks[each.track].process == trace_.tracks[threads_[0]->track].process) {
        ask(&each);
      }
    }
    walk_thread(time, 0);
  }

 private:
  void walk_thread(Interval time, std::size_t number) {
    if (number == threads_.size() || time.begin >= time.end) {
      add(time, Doing::kUnattributed, kNone);
      return;
    }
    const HostThread& thread = *threads_[number];
    std::size_t at = thread.stretch_at(time.begin);
    while (time.begin < time.end) {
      const bool over = at == thread.stretches.size() || thread.stretches[at].time.begin >= time.end;
      const std::int64_t next = over ? time.end : std::max(thread.stretches[at].time.begin, time.begin);
      if (time.begin < next) {
        walk_thread({time.begin, next}, number + 1);
        time.begin = next;
      }
      if (!over) {
        const Stretch& stretch = thread.stretches[at++];
        const std::int64_t end = std::min(stretch.time.end, time.end);
        const HostWork work = words_.work(stretch.event);
        // Other threads' frames are where they sleep: only their operators count.
        const bool named = work.doing != Doing::kUnattributed && (number < trusted_ || work.doing != Doing::kRange);
        named ? add({time.begin, end}, work.doing, work.event) : walk_thread({time.begin, end}, number + 1);
        time.begin = end;
      }
    }
  }

  const Trace& trace_;
  const Links& links_;
  const HostWords& words_;
  IdleTime& idle_;
  std::vector<const HostThread*> threads_;
  std::size_t trusted_ = 0;  // of threads_, those whose frames count, too
  std::size_t first_ = 0;    // piece of this gap
};

// A copy from or to pageable memory begins in the call that asks for it, and blocks the host.
bool blocks(const Trace& trace, std::uint32_t launch) {
  return trace.name(trace.events[launch]).find("Memcpy") != std::string_view::npos ||
         trace.name(trace.events[launch]).find("memcpy") != std::string_view::npos;
}

void name_gap(const Trace& trace, GapWalk& walk, const IdleGap& gap) {
  const Interval& time = gap.time;
  if (gap.launch == kNone) {
    walk.walk(time, kNone);
    return;
  }
  const Event& launch = trace.events[gap.launch];
  const std::int64_t called = std::clamp(launch.begin, time.begin, time.end);
  const std::int64_t returned = std::clamp(launch.end, called, time.end);
  walk.walk({time.begin, called}, launch.track);
  if (returned == time.begin) {
    walk.add({returned, time.end}, Doing::kQueued, gap.ended_by);
  } else {
    walk.add({called, returned}, blocks(trace, gap.launch) ? Doing::kSync : Doing::kLatency, gap.launch);
    walk.add({returned, time.end}, Doing::kLatency, gap.launch);
  }
}

std::string label(const Trace& trace, const IdlePiece& piece) {
  return piece.event == kNone ? std::string() : std::string(trace.name(trace.events[piece.event]));
}

void sum_up(const Trace& trace, IdleTime& idle) {
  std::map<std::pair<Doing, std::uint32_t>, IdleName> sums;
  for (const IdlePiece& piece : idle.pieces) {
    const std::uint32_t name = piece.event == kNone ? kNone : trace.events[piece.event].name;
    IdleName& sum = sums[{piece.doing, name}];
    if (sum.times == 0) {
      sum.doing = piece.doing;
      sum.name = label(trace, piece);
    }
    sum.time += piece.time.length();
    ++sum.times;
    idle.by_doing[static_cast<std::size_t>(piece.doing)] += piece.time.length();
    idle.total += piece.time.length();
  }
  for (auto& [key, sum] : sums) {
    idle.names.push_back(std::move(sum));
  }
  std::ranges::stable_sort(idle.names, std::ranges::greater(), &IdleName::time);
}

}  // namespace

IdleTime idle_time(const Trace& trace, const Links& links, const HostWords& words, const DeviceTime& device,
                   const Intervals& window) {
  IdleTime idle;
  idle.window = length(window);
  GapWalk walk(trace, links, words, idle);
  std::size_t next = 0;
  for (const Interval& time : without(window, device.busy)) {
    while (next < device.work.size() && trace.events[device.work[next]].begin < time.end) {
      ++next;
    }
    IdleGap gap{.time = time};
    while (next < device.work.size() && trace.events[device.work[next]].duration() == 0) {
      ++next;
    }
    if (next < device.work.size()) {
      gap.ended_by = device.work[next];
      gap.launch = links.launch_of(gap.ended_by);
    }
    walk.begin_gap();
    name_gap(trace, walk, gap);
    walk.end_gap(gap);
  }
  sum_up(trace, idle);
  return idle;
}

std::vector<IdlePiece> host_pieces(const Trace& trace, const Links& links, const HostWords& words,
                                   const Intervals& window) {
  IdleTime all;
  GapWalk walk(trace, links, words, all);
  walk.begin_gap();
  for (const Interval& time : window) {
    walk.walk(time, links.main_track());
  }
  return std::move(all.pieces);
}

IdleTime host_idle_time(const Trace& trace, const Links& links, const HostWords& words, const Intervals& window) {
  IdleTime idle;
  idle.window = length(window);
  const HostThread* const thread = links.main_track() == kNone ? nullptr : links.thread(links.main_track());
  std::vector<Interval> busy;
  if (thread != nullptr) {
    for (const Stretch& stretch : thread->stretches) {
      if (words.work(stretch.event).doing == Doing::kLaunching) {
        busy.push_back(stretch.time);
      }
    }
  }
  GapWalk walk(trace, links, words, idle);
  for (const Interval& time : without(window, united(std::move(busy)))) {
    walk.begin_gap();
    walk.walk(time, links.main_track());
    walk.end_gap({.time = time});
  }
  sum_up(trace, idle);
  return idle;
}

}  // namespace stoker::observe::trace
