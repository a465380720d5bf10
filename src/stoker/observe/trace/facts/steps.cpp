// SPDX-License-Identifier: Apache-2.0
#include "stoker/observe/trace/facts/steps.h"

#include <algorithm>
#include <map>

#include "stoker/observe/trace/categories.h"

namespace stoker::observe::trace {

std::vector<Step> steps_of(const Trace& trace) {
  std::map<std::uint32_t, std::vector<Step>> by_track;
  for (const Event& event : trace.events) {
    if (event.kind == Kind::kAnnotation && event.duration() > 0 && is_step(trace.name(event))) {
      by_track[event.track].push_back({std::string(trace.name(event)), {event.begin, event.end}});
    }
  }
  std::vector<Step> most;
  for (auto& [track, steps] : by_track) {
    if (steps.size() > most.size()) {
      most = std::move(steps);
    }
  }
  return most;
}

Interval whole_time(const Trace& trace) {
  if (trace.events.empty()) {
    return {};
  }
  Interval whole{trace.events.front().begin, trace.events.front().end};
  for (const Event& event : trace.events) {
    whole.end = std::max(whole.end, event.end);
  }
  return whole;
}

Intervals step_time(const Trace& trace, const std::vector<Step>& steps) {
  std::vector<Interval> all;
  for (const Step& step : steps) {
    all.push_back(step.time);
  }
  if (all.empty()) {
    all.push_back(whole_time(trace));
  }
  return united(std::move(all));
}

}  // namespace stoker::observe::trace
