// SPDX-License-Identifier: Apache-2.0
// Kernels are compiled or loaded in the middle of training.
#include "stoker/observe/doctor/rules/all.h"
#include "stoker/observe/doctor/rules/rule_parts.h"

namespace stoker::observe::doctor {
namespace {

constexpr double kMost = 0.02;                     // of the time
constexpr Reach kReach = {.low = 0.5, .high = 1};  // a first compilation remains

Judgement judge_script(const Facts& facts) {
  const auto compiling = facts.share("compile");
  if (!compiling) {
    return Abstained{"where the program spends its time (py-spy)"};
  }
  const double share = *compiling;
  if (share < kMost) {
    return Healthy{};
  }
  Finding finding;
  finding.claim = fmt::format("torch.compile compiles again for {} of the time, after the first step", percent(share));
  finding.evidence = {part_words(facts, "compile")};
  finding.cure =
      "pad inputs to a few lengths, or torch.compile(..., dynamic=True); TORCH_LOGS=recompiles names the guards";
  finding.option = "dynamic=True";
  finding.gain = predict(facts.periods, part_of_time("compile"), kReach);
  return finding;
}

Judgement judge(const Facts& facts) {
  if (facts.source == Source::kScript || facts.source == Source::kProcess) {
    return judge_script(facts);
  }
  return judge_trace_part(
      facts, {.part = "compiling",
              .most = kMost,
              .reach = kReach,
              .in_marked_steps = true,
              .claim = "The device stands still {} of the time while kernels are compiled or loaded",
              .cure = "pad inputs to a few lengths, or mark dimensions as dynamic; warm up before measuring"});
}

}  // namespace

const Rule kRecompiles = {
    .id = "recompiles",
    .level = Level::kTrace,
    .signal = "idle time of the device while the host compiled or loaded kernels; of a script, time in torch.compile",
    .threshold = "2 % of the time of marked steps, or of a script's steps after the first",
    .source = "pytorch/pytorch#97783: a compilation for each new length, 262 batches in 63 minutes",
    .disproof = "later steps compile nothing: then it is the start of the program",
    .judge = judge,
};

}  // namespace stoker::observe::doctor
