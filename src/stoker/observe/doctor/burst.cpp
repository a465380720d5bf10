// SPDX-License-Identifier: Apache-2.0
#include "stoker/observe/doctor/burst.h"

#include <algorithm>
#include <array>

#include "stoker/base/error.h"
#include "stoker/observe/doctor/trace_facts.h"
#include "stoker/observe/trace/read_trace.h"

namespace stoker::observe::doctor {
namespace {

constexpr std::array<std::string_view, 4> kBusy = {"compute", "communication", "copy", "overlap"};
// Idle time in which the host worked: these are what a profiler makes longer.
constexpr std::array<std::string_view, 4> kHost = {"launching", "latency", "range", "unattributed"};

constexpr std::int64_t kMostSteps = 1000;
constexpr std::int64_t kLongCall = 100'000;  // ns

// The host's time under the profiler in multiples of its own: the middle of 1.4 to 2.3.
constexpr double kSlowdown = 1.8;

template <std::size_t N>
double sum_of(const Parts& parts, const std::array<std::string_view, N>& names) {
  double sum = 0;
  for (const std::string_view name : names) {
    const auto found = parts.find(name);
    sum += found == parts.end() ? 0 : found->second.seconds;
  }
  return sum;
}

template <std::size_t N>
bool is_among(std::string_view name, const std::array<std::string_view, N>& names) {
  return std::ranges::find(names, name) != names.end();
}

// Seconds of a usual step, pauses left out: the median of the periods. 0 without periods.
double usual_step(const std::vector<ScriptPeriod>& periods) {
  std::vector<double> steps;
  for (std::size_t i = periods.size() > 1 ? 1 : 0; i < periods.size(); ++i) {
    const Period& period = periods[i].period;
    steps.push_back((period.seconds - period.paused()) / static_cast<double>(period.steps));
  }
  if (steps.empty()) {
    return 0;
  }
  const auto middle = steps.begin() + static_cast<std::ptrdiff_t>(steps.size() / 2);
  std::ranges::nth_element(steps, middle);
  return *middle;
}

struct Means {
  double busy = 0, host = 0, waits = 0;  // seconds per step
};

Means means_of(const std::vector<Period>& periods) {
  Means means;
  for (const Period& period : periods) {
    const double busy = sum_of(period.parts, kBusy), host = sum_of(period.parts, kHost);
    means.busy += busy / static_cast<double>(periods.size());
    means.host += host / static_cast<double>(periods.size());
    for (const auto& [name, time] : period.parts) {
      const bool wait = !is_among(std::string_view(name), kBusy) && !is_among(std::string_view(name), kHost);
      means.waits += wait ? time.seconds / static_cast<double>(periods.size()) : 0;
    }
  }
  return means;
}

void scale(std::vector<Period>& periods, double busy, double host, double waits) {
  for (Period& period : periods) {
    period.seconds = 0;
    for (auto& [name, time] : period.parts) {
      const std::string_view part = name;
      time.seconds *= is_among(part, kBusy) ? busy : is_among(part, kHost) ? host : waits;
      period.seconds += time.seconds;
    }
  }
}

// Time per marked step that the host spends blocked in the driver: calls that last longer than any launch does by
// itself.
double blocked_seconds(const trace::TraceFacts& trace) {
  std::int64_t blocked = 0;
  for (const trace::Event& event : trace.trace.events) {
    const bool in_steps = !trace.steps.empty() && event.begin >= trace.steps.front().time.begin &&
                          event.begin < trace.steps.back().time.end;
    if (event.kind == trace::Kind::kRuntime && in_steps && event.duration() > kLongCall) {
      blocked += event.duration();
    }
  }
  return trace.steps.empty() ? 0 : 1e-9 * static_cast<double>(blocked) / static_cast<double>(trace.steps.size());
}

}  // namespace

Facts burst_facts(const trace::TraceFacts& trace, double step_seconds, std::int64_t recorded_steps) {
  Facts facts;
  if (trace.devices.empty() || step_seconds <= 0 || recorded_steps < 1 || recorded_steps > kMostSteps) {
    return facts;
  }
  facts = device_facts(trace, recorded_steps);
  const Means means = means_of(facts.periods);
  if (means.busy <= 0) {
    return {};
  }
  const double device = std::min(means.busy, step_seconds);
  const double idle = step_seconds - device;
  const double waits = means.waits > 0 ? std::min(1.0, idle / means.waits) : 1;
  const double left = idle - waits * means.waits;
  const double host = means.host > 0 ? std::min(1.0, left / means.host) : 1;
  const double under_profiler =
      trace.steps.empty() ? facts.seconds() / static_cast<double>(recorded_steps) : 1e-9 * trace.mean_step();
  // The driver's calls in which the host is blocked are among what the device waited for, where it waited.
  const double working = under_profiler - std::max(blocked_seconds(trace), means.waits);
  scale(facts.periods, device / means.busy, host, waits);
  if (const double missing = step_seconds - device - waits * means.waits - host * means.host; missing > 0) {
    for (Period& period : facts.periods) {
      period.parts["not_recorded"].seconds += missing;
      period.seconds += missing;
    }
  }
  facts.figures["step.seconds"] = {step_seconds, "script"};
  facts.figures["device.seconds"] = {device, "trace"};
  facts.figures["host.seconds"] = {std::max(0.0, std::min(step_seconds - waits * means.waits, working / kSlowdown)),
                                   "trace"};
  return facts;
}

std::shared_ptr<const Facts> read_burst(const std::filesystem::path& folder, const ScriptProcess& trainer,
                                        std::vector<std::string>& damage) {
  if (trainer.burst.empty() || trainer.periods.empty() || trainer.burst.find('/') != std::string::npos) {
    return nullptr;
  }
  try {
    std::vector<trace::Trace> traces = trace::read_traces(folder / trainer.burst);
    const trace::TraceFacts facts(std::move(traces.front()));
    auto burst = std::make_shared<Facts>(burst_facts(facts, usual_step(trainer.periods), trainer.burst_steps));
    if (burst->periods.empty()) {
      damage.emplace_back("the recorded steps hold no work of a GPU");
      return nullptr;
    }
    burst->waits = trainer.waits;
    burst->sites = trainer.sites;
    for (const auto& [name, value] : trainer.figures) {
      burst->figures.try_emplace(name, Figure{value, "script"});
    }
    return burst;
  } catch (const Error& error) {
    damage.emplace_back(error.what());
    return nullptr;
  }
}

}  // namespace stoker::observe::doctor
