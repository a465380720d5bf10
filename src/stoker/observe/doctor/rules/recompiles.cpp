// SPDX-License-Identifier: Apache-2.0
// Kernels are compiled or loaded in the middle of training.
#include "stoker/observe/doctor/rules/all.h"
#include "stoker/observe/doctor/rules/rule_parts.h"

namespace stoker::observe::doctor {
namespace {

constexpr double kMost = 0.02;                     // of the time
constexpr Reach kReach = {.low = 0.5, .high = 1};  // a first compilation remains

Judgement judge(const Facts& facts) {
  if (facts.source != "trace") {
    return Abstained{"a recorded trace"};
  }
  if (facts.figure("steps.marked").value_or(0) < 1) {
    return Abstained{"marks of steps: without them this may be the start of the program (profiler.step())"};
  }
  const double share = facts.share("compiling").value_or(0);
  if (share < kMost) {
    return Healthy{};
  }
  Finding finding;
  finding.claim = fmt::format("The device stands still {} of the time while kernels are compiled or loaded: {}",
                              percent(share), idle_name(facts, "compiling"));
  finding.evidence = idle_words(facts, "compiling");
  finding.cure = "pad inputs to a few lengths, or mark dimensions as dynamic; warm up before measuring";
  finding.gain = predict(facts.periods, part_of_time("compiling"), kReach);
  return finding;
}

}  // namespace

const Rule kRecompiles = {
    .id = "recompiles",
    .level = Level::kTrace,
    .signal = "idle time of the device while the host compiled or loaded kernels",
    .threshold = "2 % of the time of marked steps",
    .source = "diagnosis case 45: a compilation for each new length, 262 batches in 63 minutes",
    .disproof = "later steps compile nothing: then it is the start of the program",
    .judge = judge,
};

}  // namespace stoker::observe::doctor
