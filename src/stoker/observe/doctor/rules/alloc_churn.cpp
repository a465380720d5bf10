// SPDX-License-Identifier: Apache-2.0
// The driver allocates or frees memory in the middle of training, and everything waits for it.
#include "stoker/observe/doctor/rules/all.h"
#include "stoker/observe/doctor/rules/rule_parts.h"

namespace stoker::observe::doctor {
namespace {

constexpr double kMost = 0.02;                             // of the time
constexpr Reach kReach = {.low = 0.5, .high = 1};          // some of the calls have other reasons
constexpr Reach kReachOfCall = {.low = 0.8, .high = 1.3};  // empty_cache() itself waits for the GPU, too

Judgement judge(const Facts& facts) {
  Judgement judgement = judge_trace_part(
      facts,
      {.part = "allocation",
       .most = kMost,
       .reach = kReach,
       .in_marked_steps = true,
       .claim = "The device stands still {} of the time while the driver allocates or frees memory",
       .cure = "no empty_cache() in the loop; fixed shapes, or expandable_segments:True in PYTORCH_CUDA_ALLOC_CONF"});
  const WaitingCalls calls = waiting_calls(facts, {"empty_cache"});
  if (auto* const finding = std::get_if<Finding>(&judgement); finding != nullptr && !calls.lines.empty()) {
    finding->evidence.insert(finding->evidence.end(), calls.lines.begin(), calls.lines.end());
    finding->cure = "no torch.cuda.empty_cache() in the loop";
    finding->gain = predict(facts.periods, part_of_time("allocation"), kReachOfCall);
  }
  return judgement;
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
