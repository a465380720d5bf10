// SPDX-License-Identifier: Apache-2.0
// The driver allocates or frees memory in the middle of training, and everything waits for it.
#include "stoker/observe/doctor/rules/all.h"
#include "stoker/observe/doctor/rules/rule_parts.h"

namespace stoker::observe::doctor {
namespace {

constexpr double kMost = 0.02;                     // of the time
constexpr Reach kReach = {.low = 0.5, .high = 1};  // some of the calls have other reasons

Judgement judge(const Facts& facts) {
  if (facts.source != "trace") {
    return Abstained{"a recorded trace"};
  }
  if (facts.figure("steps.marked").value_or(0) < 1) {
    return Abstained{"marks of steps: without them this may be the start of the program (profiler.step())"};
  }
  const double share = facts.share("allocation").value_or(0);
  if (share < kMost) {
    return Healthy{};
  }
  Finding finding;
  finding.claim = fmt::format("The device stands still {} of the time while the driver allocates or frees memory: {}",
                              percent(share), idle_name(facts, "allocation"));
  finding.evidence = idle_words(facts, "allocation");
  finding.cure = "no empty_cache() in the loop; fixed shapes, or expandable_segments:True in PYTORCH_CUDA_ALLOC_CONF";
  finding.gain = predict(facts.periods, part_of_time("allocation"), kReach);
  return finding;
}

}  // namespace

const Rule kAllocChurn = {
    .id = "alloc_churn",
    .level = Level::kTrace,
    .signal = "idle time of the device while the host was in cudaMalloc, cudaFree or cudaHostAlloc",
    .threshold = "2 % of the time of marked steps",
    .source = "a warm training allocates nothing from the driver; cudaFree waits for the whole device",
    .disproof = "the calls end after the first steps: then they are the start of the program",
    .judge = judge,
};

}  // namespace stoker::observe::doctor
