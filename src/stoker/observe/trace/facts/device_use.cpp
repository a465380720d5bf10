// SPDX-License-Identifier: Apache-2.0
#include "stoker/observe/trace/facts/device_use.h"

#include <algorithm>
#include <map>

#include "stoker/observe/trace/categories.h"

namespace stoker::observe::trace {
namespace {

unsigned bit_of(const Trace& trace, const Event& event) {
  switch (work_of(event.kind, trace.name(event))) {
    case Work::kCompute: return kComputing;
    case Work::kCommunication: return kCommunicating;
    case Work::kMemory: return kCopying;
  }
  return kComputing;
}

}  // namespace

DeviceUse use_in(const Intervals& window, const ByKind& kinds) {
  DeviceUse use{.window = window};
  struct Edge {
    std::int64_t time;
    int sign;
    unsigned bit;
  };
  std::vector<Edge> edges;
  for (unsigned kind = 0; kind < kinds.size(); ++kind) {
    for (const Interval& each : common(kinds[kind], window)) {
      edges.push_back({each.begin, 1, 1U << kind});
      edges.push_back({each.end, -1, 1U << kind});
    }
  }
  std::ranges::sort(edges, {}, &Edge::time);
  unsigned state = 0;
  std::int64_t before = 0;
  for (const Edge& edge : edges) {
    if (state != 0) {
      use.by_state[state] += edge.time - before;
    }
    before = edge.time;
    state = edge.sign > 0 ? state | edge.bit : state & ~edge.bit;
  }
  std::int64_t working = 0;
  for (unsigned each = 1; each < use.by_state.size(); ++each) {
    working += use.by_state[each];
  }
  use.by_state[0] = use.total() - working;
  return use;
}

namespace {

std::vector<StreamUse> streams_of(const Trace& trace, const DeviceTime& device) {
  std::map<int, std::vector<Interval>> by_stream;
  std::map<int, StreamUse> uses;
  for (const std::uint32_t i : device.work) {
    const Event& event = trace.events[i];
    const int stream = trace.track(event).stream;
    by_stream[stream].push_back({event.begin, event.end});
    StreamUse& use = uses[stream];
    use.stream = stream;
    use.track = event.track;
    ++use.pieces;
  }
  std::vector<StreamUse> result;
  for (auto& [stream, use] : uses) {
    const Intervals own = united(by_stream[stream]);
    std::vector<Interval> others;
    for (const auto& [other, intervals] : by_stream) {
      if (other != stream) {
        others.insert(others.end(), intervals.begin(), intervals.end());
      }
    }
    use.busy = length(own);
    use.alone = length(without(own, united(std::move(others))));
    result.push_back(use);
  }
  return result;
}

}  // namespace

std::int64_t DeviceUse::time(unsigned bits) const {
  std::int64_t sum = 0;
  for (unsigned state = 0; state < by_state.size(); ++state) {
    sum += (state & bits) == bits ? by_state[state] : 0;
  }
  return sum;
}

std::vector<DeviceTime> devices_of(const Trace& trace, const Intervals& steps) {
  std::map<int, DeviceTime> devices;
  std::map<int, std::array<std::vector<Interval>, 3>> work;
  for (std::uint32_t i = 0; i < trace.events.size(); ++i) {
    const Event& event = trace.events[i];
    if (!event.on_device()) {
      continue;
    }
    const int number = trace.track(event).device;
    work[number][static_cast<unsigned>(__builtin_ctz(bit_of(trace, event)))].push_back({event.begin, event.end});
    devices[number].work.push_back(i);
  }
  std::vector<DeviceTime> result;
  for (auto& [number, device] : devices) {
    device.device = number;
    ByKind& kinds = device.kinds;
    std::vector<Interval> all;
    for (std::size_t kind = 0; kind < kinds.size(); ++kind) {
      kinds[kind] = united(std::move(work[number][kind]));
      all.insert(all.end(), kinds[kind].begin(), kinds[kind].end());
    }
    device.busy = united(std::move(all));
    if (device.busy.empty()) {
      continue;  // all its work took no time
    }
    const Intervals whole{{device.busy.front().begin, device.busy.back().end}};
    device.whole = use_in(whole, kinds);
    device.steps = steps.empty() ? device.whole : use_in(steps, kinds);
    device.streams = streams_of(trace, device);
    result.push_back(std::move(device));
  }
  return result;
}

}  // namespace stoker::observe::trace
