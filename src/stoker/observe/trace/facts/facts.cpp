// SPDX-License-Identifier: Apache-2.0
#include "stoker/observe/trace/facts/facts.h"

#include <future>
#include <utility>

namespace stoker::observe::trace {

TraceFacts::TraceFacts(Trace read)
    : trace(std::move(read)),
      links(trace),
      words(trace, links),
      steps(steps_of(trace)),
      window(step_time(trace, steps)) {
  // It takes as long as all the rest, so it is searched beside it; after it, where no thread can be started.
  std::future<void> searched = std::async([this] { path = critical_path(trace, links, whole()); });
  work = work_sums(trace, links);
  operators = operator_sums(trace, links);
  ranges = range_sums(trace, links);
  memory = memory_curves(trace);
  take_devices();
  searched.get();
}

void TraceFacts::take_devices() {
  for (DeviceTime& device : devices_of(trace, steps.empty() ? Intervals{} : window)) {
    DeviceFactsOfTrace facts{.time = std::move(device), .idle = {}, .idle_whole = {}};
    const Intervals &in_steps = facts.time.steps.window, &in_all = facts.time.whole.window;
    facts.idle = idle_time(trace, links, words, facts.time, in_steps);
    facts.idle_whole = in_all == in_steps ? facts.idle : idle_time(trace, links, words, facts.time, in_all);
    devices.push_back(std::move(facts));
  }
  if (devices.empty()) {
    host_idle = host_idle_time(trace, links, words, window);
  }
}

Interval TraceFacts::whole() const {
  return window.empty() ? Interval{} : Interval{window.front().begin, window.back().end};
}

std::int64_t TraceFacts::recorded_path() const {
  const CriticalPath recorded = critical_path(trace, links, whole(), kRecordedEdges);
  return recorded.found ? recorded.length : -1;
}

double TraceFacts::mean_step() const {
  double sum = 0;
  for (const Step& step : steps) {
    sum += static_cast<double>(step.time.length());
  }
  return steps.empty() ? -1 : sum / static_cast<double>(steps.size());
}

}  // namespace stoker::observe::trace
