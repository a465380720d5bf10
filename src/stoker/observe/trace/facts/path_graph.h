// SPDX-License-Identifier: Apache-2.0
// The graph of who waited for whom, for critical_path(). Two nodes per event: its begin and its end. For one thread.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "stoker/observe/trace/facts/critical_path.h"

namespace stoker::observe::trace {

class PathGraph {
 public:
  using Node = std::uint32_t;
  struct Edge {
    Node from = 0, to = 0;
    std::uint32_t event = kNone;  // that the time belongs to
    PathPart part = PathPart::kHost;
    bool counts = false;  // its time is part of the length
  };

  // Both outlive the graph. Of the calls that begin in the window and what they launched.
  PathGraph(const Trace& trace, const Links& links, Interval window, PathRules rules);

  // The edges of the longest path in order; empty if there are none, or if edges form a circle.
  [[nodiscard]] std::vector<Edge> longest() const;
  [[nodiscard]] std::int64_t time(Node node) const { return times_[node]; }
  // What an edge adds to the length, ns.
  [[nodiscard]] std::int64_t counted(const Edge& each) const {
    return each.counts ? time(each.to) - time(each.from) : 0;
  }
  [[nodiscard]] bool empty() const { return events_.empty(); }

 private:
  static constexpr Node kNoNode = ~Node{0};
  // A launch of work on a stream, or its begin there, in order of time.
  struct Queued {
    std::int64_t time;
    int change;  // 1: launched, -1: begun
    std::uint32_t event;
  };
  using Stream = std::pair<int, int>;  // device, stream

  void take_events(Interval window);
  void add_calls();
  void add_thread(const HostThread& thread);
  void count_queues();
  void add_device_work();
  void add_work(std::uint32_t event);
  void add_sync(std::uint32_t event);
  void add_inferred_waits();
  [[nodiscard]] std::uint32_t launched_before_record(std::uint32_t sync) const;
  [[nodiscard]] std::uint32_t launched_after_wait(std::uint32_t sync) const;
  void edge(Node from, Node to, PathPart part, bool counts, std::uint32_t event);
  [[nodiscard]] Node begin_of(std::uint32_t event) const;
  [[nodiscard]] Node end_of(std::uint32_t event) const;
  [[nodiscard]] Stream stream_of(std::uint32_t event) const;

  const Trace& trace_;
  const Links& links_;
  PathRules rules_;
  std::vector<std::uint32_t> events_;  // of the graph
  std::vector<std::uint32_t> number_;  // of an event of the trace in events_; kNone: not in the graph
  std::vector<std::int64_t> times_;    // of a node, ns
  std::vector<Edge> edges_;
  std::vector<bool> on_empty_;  // of work of a device: whether nothing else was outstanding on its stream
  std::unordered_map<std::int64_t, Node> last_of_stream_;       // end of the last work, by packed stream
  std::unordered_map<std::uint32_t, std::uint32_t> waits_for_;  // work to the work of another stream before it
  std::unordered_map<std::int64_t, std::vector<std::uint32_t>> launches_;  // work by packed stream, by launch
  bool has_sync_records_ = false;
};

}  // namespace stoker::observe::trace
