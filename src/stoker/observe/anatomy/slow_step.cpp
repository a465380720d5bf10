// SPDX-License-Identifier: Apache-2.0
#include "stoker/observe/anatomy/slow_step.h"

#include <algorithm>
#include <string>

#include "stoker/base/counted.h"
#include "stoker/base/file.h"
#include "stoker/base/fmt.h"
#include "stoker/base/thousands.h"

namespace stoker::observe {
namespace {

using core::Phase;

constexpr double kSlower = 3;           // times the usual
constexpr double kLeastExtra = 1e-3;    // s
constexpr double kMinorFault = 2.5e-7;  // s at least, for a page of 4 KiB that the kernel clears

Phase slowest_phase(const StepFacts& facts) {
  Phase slowest = Phase::kOther;
  double most = -1;
  for (const Phase phase : core::kPhaseOrder) {
    const double extra = facts.phases[core::index_of(phase)] - facts.usual[core::index_of(phase)];
    if (extra > most) {
      most = extra;
      slowest = phase;
    }
  }
  return slowest;
}

// Whether the kernel took the core away, and nothing else can be the cause: a thread that waits for others sleeps.
bool only_lost_core(const StepFacts& facts, double extra) {
  const ThreadUsage& usage = facts.usage;
  return usage.involuntary > 0 && usage.voluntary == 0 && facts.seconds - usage.cpu_seconds > extra / 2;
}

// The least time that each thread spent on something within the step. seconds: of each, in the time of the figures.
double within_step(const StepFacts& facts, double seconds) {
  return seconds - std::max(facts.source_seconds - facts.seconds, 0.0);
}

std::string cause_of_fetch(const StepFacts& facts, double extra) {
  const core::SourceFigures& source = facts.source;
  if (only_lost_core(facts, extra)) {
    return "";
  }
  if (source.slowest_seconds > extra / 2 && !source.slowest.empty()) {
    return fmt::format("slow sample {}: {:.2g} s", printable(source.slowest), source.slowest_seconds);
  }
  const auto longest = std::ranges::max_element(source.stages, {}, &core::StageFigures::seconds);
  const double loading =
      longest == source.stages.end() ? 0 : within_step(facts, longest->seconds / std::max(source.threads, 1));
  if (within_step(facts, source.copy_seconds) > std::max(loading, extra / 2)) {
    return "copy to the device";
  }
  return loading > extra / 2 ? "loading: " + longest->name : "";
}

std::string cause_in_thread(const ThreadUsage& usage, double seconds, double extra) {
  const double off = std::max(seconds - usage.cpu_seconds, 0.0);
  if (usage.major_faults > 0 && off > extra / 2) {
    return fmt::format("memory read from disk: {}", counted(usage.major_faults, "page fault"));
  }
  if (static_cast<double>(usage.minor_faults) * kMinorFault > extra / 2) {
    return fmt::format("memory new to the process: {} page faults", thousands(usage.minor_faults));
  }
  if (usage.involuntary > 0 && off > extra / 2 && usage.involuntary >= usage.voluntary) {
    return fmt::format("the kernel gave the core to others, {}", counted(usage.involuntary, "time"));
  }
  return off > extra / 2 && usage.voluntary > 0 ? fmt::format("asleep for {:.2g} s of it", off) : "";
}

}  // namespace

bool is_slow(double seconds, double usual_seconds) {
  return seconds > kSlower * usual_seconds && seconds - usual_seconds > kLeastExtra;
}

core::SlowStep explain(const StepFacts& facts) {
  const Phase phase = slowest_phase(facts);
  const double extra = facts.phases[core::index_of(phase)] - facts.usual[core::index_of(phase)];
  core::SlowStep slow;
  slow.step = facts.step;
  slow.seconds = facts.seconds;
  slow.usual_seconds = facts.usual_seconds;
  slow.phase = core::time_name(phase);
  if (phase == Phase::kCheckpoint || phase == Phase::kEvaluation) {
    slow.cause = slow.phase;
  } else if (phase == Phase::kDeviceWait) {
    slow.cause = "the device was still computing earlier steps";
  } else if (phase == Phase::kInput || phase == Phase::kCopy) {
    slow.cause = cause_of_fetch(facts, extra);
  }
  if (slow.cause.empty()) {
    slow.cause = cause_in_thread(facts.usage, facts.seconds, extra);
  }
  const auto figure = [&](const char* name, double value) { slow.figures.push_back({name, value}); };
  figure("phase_seconds", facts.phases[core::index_of(phase)]);
  figure("cpu_seconds", facts.usage.cpu_seconds);
  figure("minor_faults", static_cast<double>(facts.usage.minor_faults));
  figure("major_faults", static_cast<double>(facts.usage.major_faults));
  figure("voluntary_switches", static_cast<double>(facts.usage.voluntary));
  figure("involuntary_switches", static_cast<double>(facts.usage.involuntary));
  return slow;
}

}  // namespace stoker::observe
