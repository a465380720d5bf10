// SPDX-License-Identifier: Apache-2.0
#include "stoker/observe/trace/facts/facts.h"

#include <utility>

namespace stoker::observe::trace {

TraceFacts::TraceFacts(Trace read)
    : trace(std::move(read)),
      links(trace),
      words(trace, links),
      steps(steps_of(trace)),
      window(step_time(trace, steps)),
      work(work_sums(trace, links)),
      operators(operator_sums(trace, links)),
      ranges(range_sums(trace, links)),
      memory(memory_curves(trace)) {
  for (DeviceTime& device : devices_of(trace, steps.empty() ? Intervals{} : window)) {
    DeviceFactsOfTrace facts{.time = std::move(device), .idle = {}, .idle_whole = {}};
    facts.idle = idle_time(trace, links, words, facts.time, facts.time.steps.window);
    facts.idle_whole = idle_time(trace, links, words, facts.time, facts.time.whole.window);
    devices.push_back(std::move(facts));
  }
  if (devices.empty()) {
    host_idle = host_idle_time(trace, links, words, window);
  }
  const Interval whole = window.empty() ? Interval{} : Interval{window.front().begin, window.back().end};
  if (const CriticalPath recorded = critical_path(trace, links, whole, kRecordedEdges); recorded.found) {
    recorded_path = recorded.length;
  }
  path = critical_path(trace, links, whole);
}

double TraceFacts::mean_step() const {
  double sum = 0;
  for (const Step& step : steps) {
    sum += static_cast<double>(step.time.length());
  }
  return steps.empty() ? -1 : sum / static_cast<double>(steps.size());
}

}  // namespace stoker::observe::trace
