// SPDX-License-Identifier: Apache-2.0
#include "stoker/observe/trace/facts/tables.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_map>
#include <utility>

namespace stoker::observe::trace {
namespace {

using NameAndShapes = std::uint64_t;

NameAndShapes key_of(const Event& event) { return (std::uint64_t{event.name} << 32) | event.shapes; }

// ns of work on devices that a call launched itself.
std::int64_t launched(const Trace& trace, const Links& links, std::uint32_t call) {
  std::int64_t sum = 0;
  for (const std::uint32_t work : links.work_of(call)) {
    sum += trace.events[work].on_device() ? trace.events[work].duration() : 0;
  }
  return sum;
}

// The innermost operator around a call; kNone: none.
std::uint32_t operator_of(const Trace& trace, const Links& links, std::uint32_t call) {
  while (call != kNone && trace.events[call].kind != Kind::kOperator) {
    call = links.caller(call);
  }
  return call;
}

// The calls of the same kind around an event, each name once: recursion is not counted twice.
template <typename Take>
void each_caller(const Trace& trace, const Links& links, std::uint32_t call, Kind kind, const Take& take) {
  std::vector<std::uint32_t> seen;
  for (; call != kNone; call = links.caller(call)) {
    const Event& event = trace.events[call];
    if (event.kind == kind && std::ranges::find(seen, event.name) == seen.end()) {
      seen.push_back(event.name);
      take(call);
    }
  }
}

}  // namespace

std::vector<WorkSum> work_sums(const Trace& trace, const Links& links) {
  std::unordered_map<std::uint32_t, WorkSum> sums;
  std::unordered_map<std::uint32_t, std::map<std::uint32_t, std::int64_t>> launchers;
  for (std::uint32_t i = 0; i < trace.events.size(); ++i) {
    const Event& event = trace.events[i];
    if (!event.on_device()) {
      continue;
    }
    WorkSum& sum = sums[event.name];
    if (sum.times++ == 0) {
      sum.name = trace.name(event);
      sum.kind = event.kind;
      sum.work = work_of(event.kind, sum.name);
    }
    sum.total += event.duration();
    sum.longest = std::max(sum.longest, event.duration());
    if (event.kind != Kind::kKernel && event.detail >= 0) {
      sum.bytes = std::max<std::int64_t>(sum.bytes, 0) + event.detail;
    }
    if (const std::uint32_t by = operator_of(trace, links, links.launch_of(i)); by != kNone) {
      launchers[event.name][trace.events[by].name] += event.duration() + 1;
    }
  }
  std::vector<WorkSum> result;
  for (auto& [name, sum] : sums) {
    if (const auto found = launchers.find(name); found != launchers.end()) {
      const auto most = std::ranges::max_element(found->second, {}, [](const auto& each) { return each.second; });
      sum.launched_by = trace.names[most->first];
    }
    result.push_back(std::move(sum));
  }
  std::ranges::sort(
      result, [](const WorkSum& a, const WorkSum& b) { return std::tie(b.total, a.name) < std::tie(a.total, b.name); });
  return result;
}

std::vector<OperatorSum> operator_sums(const Trace& trace, const Links& links) {
  std::unordered_map<NameAndShapes, OperatorSum> sums;
  for (std::uint32_t i = 0; i < trace.events.size(); ++i) {
    const Event& event = trace.events[i];
    if (event.kind == Kind::kOperator) {
      OperatorSum& sum = sums[key_of(event)];
      if (sum.times++ == 0) {
        sum.name = trace.name(event);
        sum.shapes = event.shapes == kNone ? std::string() : trace.names[event.shapes];
      }
      sum.host += event.duration();
      sum.host_self += links.self_time(i);
    }
    const std::int64_t device = event.kind == Kind::kRuntime ? launched(trace, links, i) : 0;
    if (event.kind == Kind::kRuntime) {
      if (const std::uint32_t by = operator_of(trace, links, i); by != kNone) {
        sums[key_of(trace.events[by])].device_self += device;
        sums[key_of(trace.events[by])].host_self += links.self_time(i);
      }
    }
    if (device > 0) {
      each_caller(trace, links, i, Kind::kOperator,
                  [&](std::uint32_t call) { sums[key_of(trace.events[call])].device += device; });
    }
  }
  std::vector<OperatorSum> result;
  for (auto& [key, sum] : sums) {
    result.push_back(std::move(sum));
  }
  std::ranges::sort(result, [](const OperatorSum& a, const OperatorSum& b) {
    return std::tie(b.device_self, b.host_self, a.name, a.shapes) <
           std::tie(a.device_self, a.host_self, b.name, b.shapes);
  });
  return result;
}

std::vector<RangeSum> range_sums(const Trace& trace, const Links& links) {
  std::unordered_map<std::uint32_t, RangeSum> sums;
  for (std::uint32_t i = 0; i < trace.events.size(); ++i) {
    const Event& event = trace.events[i];
    if (event.kind == Kind::kAnnotation && !is_step(trace.name(event))) {
      RangeSum& sum = sums[event.name];
      sum.name = trace.name(event);
      ++sum.times;
      sum.host += event.duration();
    }
    if (const std::int64_t device = event.kind == Kind::kRuntime ? launched(trace, links, i) : 0; device > 0) {
      each_caller(trace, links, i, Kind::kAnnotation, [&](std::uint32_t call) {
        if (!is_step(trace.name(trace.events[call]))) {
          sums[trace.events[call].name].device += device;
        }
      });
    }
  }
  std::vector<RangeSum> result;
  for (auto& [name, sum] : sums) {
    result.push_back(std::move(sum));
  }
  std::ranges::sort(
      result, [](const RangeSum& a, const RangeSum& b) { return std::tie(b.host, a.name) < std::tie(a.host, b.name); });
  return result;
}

}  // namespace stoker::observe::trace
