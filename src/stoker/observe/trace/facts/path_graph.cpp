// SPDX-License-Identifier: Apache-2.0
#include "stoker/observe/trace/facts/path_graph.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <string_view>

namespace stoker::observe::trace {
namespace {

std::int64_t packed(std::pair<int, int> stream) {
  return (std::int64_t{stream.first} << 32) | static_cast<std::uint32_t>(stream.second);
}

// These count nothing themselves: what they wait for does. HolisticTraceAnalysis' list, and the same calls of HIP.
bool is_blocking(std::string_view name) {
  constexpr std::string_view kCalls[] = {
      "DeviceSynchronize", "StreamSynchronize", "EventQuery", "EventSynchronize", "Memcpy",
      "MemcpyAsync",       "MemcpyWithStream"};
  for (const std::string_view prefix : {"cuda", "hip"}) {
    if (name.starts_with(prefix)) {
      return std::ranges::find(kCalls, name.substr(prefix.size())) != std::end(kCalls);
    }
  }
  return false;
}

bool in_graph(const Event& event) {
  return event.duration() > 0 && (event.kind == Kind::kOperator || event.kind == Kind::kRuntime);
}

}  // namespace

PathGraph::PathGraph(const Trace& trace, const Links& links, Interval window, PathRules rules)
    : trace_(trace), links_(links), rules_(rules) {
  take_events(window);
  add_calls();
  count_queues();
  add_device_work();
  if (rules_.inferred_waits && !has_sync_records_) {
    add_inferred_waits();
  }
}

PathGraph::Node PathGraph::begin_of(std::uint32_t event) const {
  return event == kNone || number_[event] == kNone ? kNoNode : 2 * number_[event];
}
PathGraph::Node PathGraph::end_of(std::uint32_t event) const {
  return event == kNone || number_[event] == kNone ? kNoNode : 2 * number_[event] + 1;
}
PathGraph::Stream PathGraph::stream_of(std::uint32_t event) const {
  const Track& track = trace_.track(trace_.events[event]);
  return {track.device, track.stream};
}

// An edge back in time comes from clocks that disagree, or from work of one stream that overlaps by rounding. If it
// counts, it counts less than nothing; else it would make the path longer than the time it took, and is left out.
void PathGraph::edge(Node from, Node to, PathPart part, bool counts, std::uint32_t event) {
  if (from != kNoNode && to != kNoNode && (counts || time(from) <= time(to))) {
    edges_.push_back({from, to, event, part, counts});
  }
}

void PathGraph::take_events(Interval window) {
  number_.assign(trace_.events.size(), kNone);
  const auto take = [&](std::uint32_t i) {
    number_[i] = static_cast<std::uint32_t>(events_.size());
    events_.push_back(i);
    times_.push_back(trace_.events[i].begin);
    times_.push_back(trace_.events[i].end);
  };
  const auto called = [&](const Event& event) {
    return in_graph(event) && window.begin <= event.begin && event.begin <= window.end;
  };
  for (std::uint32_t i = 0; i < trace_.events.size(); ++i) {
    const Event& event = trace_.events[i];
    const std::uint32_t launch = links_.launch_of(i);
    has_sync_records_ = has_sync_records_ || event.kind == Kind::kSync;
    const bool inside =
        launch == kNone ? rules_.unlaunched_work && window.holds(event.begin) : called(trace_.events[launch]);
    if (called(event) || (event.on_device() && inside)) {
      take(i);
    }
  }
}

void PathGraph::add_calls() {
  edges_.reserve(3 * events_.size());  // few traces need more
  for (const HostThread& thread : links_.threads()) {
    add_thread(thread);
  }
}

// Edges follow the nesting: begin of the outer call, begin of the inner one, its end, begin of the next one, ...
void PathGraph::add_thread(const HostThread& thread) {
  struct Open {
    std::uint32_t event;
    std::int64_t end;
  };
  std::vector<Open> stack;
  Node last = kNoNode, last_outermost = kNoNode;
  const auto close = [&] {
    const std::uint32_t event = stack.back().event;
    stack.pop_back();
    const bool counts =
        !(trace_.events[event].kind == Kind::kRuntime && is_blocking(trace_.name(trace_.events[event])));
    edge(last, end_of(event), PathPart::kHost, counts, event);
    last = stack.empty() ? kNoNode : end_of(event);
    last_outermost = stack.empty() ? end_of(event) : last_outermost;
  };
  for (const std::uint32_t i : thread.events) {
    if (number_[i] == kNone) {
      continue;
    }
    const Event& event = trace_.events[i];
    while (!stack.empty() && stack.back().end <= event.begin) {
      close();
    }
    if (stack.empty()) {
      edge(last_outermost, begin_of(i), PathPart::kOrder, false, kNone);
    } else {
      edge(last, begin_of(i), PathPart::kHost, true, stack.back().event);
    }
    last = begin_of(i);
    stack.push_back({i, stack.empty() ? event.end : std::min(event.end, stack.back().end)});
  }
  while (!stack.empty()) {
    close();
  }
}

// Follows how much work was outstanding on a stream: launched, but not begun.
void PathGraph::count_queues() {
  on_empty_.assign(trace_.events.size(), true);
  std::map<Stream, std::vector<Queued>> streams;
  for (std::uint32_t i = 0; i < trace_.events.size(); ++i) {
    if (trace_.events[i].on_device() && links_.launch_of(i) != kNone) {
      streams[stream_of(i)].push_back({trace_.events[links_.launch_of(i)].begin, 1, i});
      streams[stream_of(i)].push_back({trace_.events[i].begin, -1, i});
    }
  }
  for (auto& [stream, queue] : streams) {
    std::ranges::stable_sort(queue, {}, &Queued::time);
    std::int32_t outstanding = 0;
    std::vector<std::uint32_t>& launches = launches_[packed(stream)];
    for (const Queued& each : queue) {
      outstanding += each.change;
      if (each.change > 0) {
        launches.push_back(each.event);
      }
      const bool empty = each.change > 0 ? outstanding == 1 : rules_.every_launch || outstanding == 0;
      on_empty_[each.event] = on_empty_[each.event] && empty;
    }
  }
}

void PathGraph::add_device_work() {
  std::vector<std::pair<std::int64_t, std::uint32_t>> order;
  for (std::uint32_t i = 0; i < trace_.events.size(); ++i) {
    const Event& event = trace_.events[i];
    if (event.kind == Kind::kSync && links_.launch_of(i) != kNone) {
      order.emplace_back(event.end, i);  // a wait is done when it ends
    } else if (event.on_device() && number_[i] != kNone) {
      order.emplace_back(event.begin, i);
    }
  }
  std::ranges::stable_sort(order, {}, [](const auto& each) { return each.first; });
  for (const auto& [time, event] : order) {
    trace_.events[event].kind == Kind::kSync ? add_sync(event) : add_work(event);
  }
}

void PathGraph::add_work(std::uint32_t event) {
  const Node begin = begin_of(event), end = end_of(event);
  edge(begin, end, PathPart::kDevice, true, event);
  const std::uint32_t launch = links_.launch_of(event);  // may be missing
  const std::int64_t launched = launch == kNone ? INT64_MIN : trace_.events[launch].begin;
  const auto wait = waits_for_.find(event);
  const Node other = wait == waits_for_.end() ? kNoNode : end_of(wait->second);
  edge(other, begin, PathPart::kWait, false, kNone);
  const auto [last, first] = last_of_stream_.try_emplace(packed(stream_of(event)), kNoNode);
  const Node before = last->second;
  const bool was_empty = launch != kNone && on_empty_[event];
  if (was_empty && (before == kNoNode || time(before) < launched) && (other == kNoNode || time(other) < launched)) {
    edge(begin_of(launch), begin, PathPart::kLaunchDelay, true, event);
    if (rules_.stream_order) {
      edge(before, begin, PathPart::kWait, false, kNone);
    }
  } else if (before != kNoNode) {
    const bool counts = other == kNoNode || time(other) < time(before);
    edge(before, begin, counts ? PathPart::kQueueDelay : PathPart::kWait, counts, event);
  }
  last->second = end;
}

void PathGraph::add_sync(std::uint32_t event) {
  const std::string_view name = trace_.name(trace_.events[event]);
  const Node call = end_of(links_.launch_of(event));
  if (name == "Stream Wait Event") {
    const std::uint32_t before = launched_before_record(event), after = launched_after_wait(event);
    if (before != kNone && after != kNone) {
      waits_for_[after] = before;
    }
  } else if (name == "Event Sync") {
    edge(end_of(launched_before_record(event)), call, PathPart::kWait, false, kNone);
  } else if (name == "Stream Sync") {
    if (const auto found = last_of_stream_.find(packed(stream_of(event))); found != last_of_stream_.end()) {
      edge(found->second, call, PathPart::kWait, false, kNone);
    }
  } else {  // "Context Sync": all streams
    for (const auto& [stream, last] : last_of_stream_) {
      edge(last, call, PathPart::kWait, false, kNone);
    }
  }
}

// The last work that was launched on the stream of an event before the event was recorded.
std::uint32_t PathGraph::launched_before_record(std::uint32_t sync) const {
  const Event& event = trace_.events[sync];
  const std::uint32_t record = event.detail < 0 ? kNone : links_.call_with(event.detail);
  const auto found = launches_.find(packed({std::max(trace_.track(event).device, 0), event.waits_on}));
  if (record == kNone || found == launches_.end()) {
    return kNone;
  }
  const auto launched = [&](std::uint32_t i) { return trace_.events[links_.launch_of(i)].begin; };
  const auto after = std::ranges::lower_bound(found->second, trace_.events[record].begin, {}, launched);
  return after == found->second.begin() ? kNone : *(after - 1);
}

// The next work that the thread that asked for the wait launched on the stream that waits.
std::uint32_t PathGraph::launched_after_wait(std::uint32_t sync) const {
  const std::uint32_t call = links_.launch_of(sync);
  const auto found = launches_.find(packed(stream_of(sync)));
  if (call == kNone || found == launches_.end()) {
    return kNone;
  }
  const Event& asked = trace_.events[call];
  const auto launched = [&](std::uint32_t i) { return trace_.events[links_.launch_of(i)].begin; };
  const auto later = std::ranges::upper_bound(found->second, asked.begin, {}, launched);
  const auto after = std::find_if(later, found->second.end(), [&](std::uint32_t i) {
    return trace_.events[links_.launch_of(i)].track == asked.track;
  });
  return after == found->second.end() ? kNone : *after;
}

// Traces without records of waiting: a synchronize call ends after all work that had ended by then.
void PathGraph::add_inferred_waits() {
  std::vector<std::uint32_t> work;  // by end
  for (const std::uint32_t i : events_) {
    if (trace_.events[i].on_device()) {
      work.push_back(i);
    }
  }
  std::ranges::sort(work, {}, [&](std::uint32_t i) { return trace_.events[i].end; });
  for (const std::uint32_t i : events_) {
    const Event& event = trace_.events[i];
    if (event.kind == Kind::kRuntime && trace_.name(event).find("Synchronize") != std::string_view::npos) {
      const auto after =
          std::ranges::upper_bound(work, event.end, {}, [&](std::uint32_t w) { return trace_.events[w].end; });
      if (after != work.begin()) {
        edge(end_of(*(after - 1)), end_of(i), PathPart::kWait, false, kNone);
      }
    }
  }
}

std::vector<PathGraph::Edge> PathGraph::longest() const {
  const std::size_t nodes = events_.size() * 2;
  // The edges in order of the node that they leave: those of a node are order[first[node]] to order[first[node + 1]].
  std::vector<std::uint32_t> first(nodes + 1, 0), degree(nodes, 0), order(edges_.size());
  for (const Edge& each : edges_) {
    ++first[each.from];
    ++degree[each.to];
  }
  std::partial_sum(first.begin(), first.end(), first.begin());
  for (auto i = static_cast<std::uint32_t>(edges_.size()); i-- > 0;) {
    order[--first[edges_[i].from]] = i;
  }
  std::vector<std::int64_t> longest(nodes, 0);
  std::vector<std::uint32_t> through(nodes, kNone), ready;
  ready.reserve(nodes);
  for (Node node = 0; node < nodes; ++node) {
    if (degree[node] == 0) {
      ready.push_back(node);
    }
  }
  for (std::size_t at = 0; at < ready.size(); ++at) {
    for (std::uint32_t i = first[ready[at]]; i < first[ready[at] + 1]; ++i) {
      const Edge& each = edges_[order[i]];
      const std::int64_t reached = longest[each.from] + counted(each);
      if (through[each.to] == kNone || reached > longest[each.to]) {
        longest[each.to] = reached;
        through[each.to] = order[i];
      }
      if (--degree[each.to] == 0) {
        ready.push_back(each.to);
      }
    }
  }
  std::vector<Edge> path;
  if (ready.size() < nodes || nodes == 0) {
    return path;
  }
  const auto end = static_cast<Node>(std::ranges::max_element(longest) - longest.begin());
  std::size_t count = 0;
  for (Node node = end; through[node] != kNone; node = edges_[through[node]].from) {
    ++count;
  }
  path.reserve(count);
  for (Node node = end; through[node] != kNone; node = edges_[through[node]].from) {
    path.push_back(edges_[through[node]]);
  }
  std::ranges::reverse(path);
  return path;
}

}  // namespace stoker::observe::trace
