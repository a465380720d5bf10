// SPDX-License-Identifier: Apache-2.0
// Gradients are set to zero instead of being freed.
#include "stoker/observe/doctor/rules/all.h"
#include "stoker/observe/doctor/rules/rule_parts.h"

namespace stoker::observe::doctor {
namespace {

constexpr double kMost = 0.02;  // of the time
// Backward then writes what it now adds to zeros: that reads both and writes one, so up to three times as many bytes
// are saved besides. On a CPU a perceptron saved 2.3 and 3.3 times the time of the zeros, a GPT 2.5 times. But there
// the freed memory may come back page by page (page_faults): with a table of 20 MB, set_to_none=True was 0.84 times as
// fast, and 1.13 to 1.19 times where freed memory was kept.
constexpr Reach kReachOnGpu = {.low = 0.9, .high = 2}, kReach = {.low = 0.9, .high = 3.5},
                kUnsure = {.low = 0, .high = 3.5};

Judgement judge(const Facts& facts) {
  if (auto other = without_script(facts)) {
    return *other;
  }
  const double share = facts.share("zero_grad").value_or(0);
  if (facts.word("zero_grad.where").empty() || share < kMost) {
    return Healthy{};
  }
  Finding finding;
  finding.claim = fmt::format("Setting gradients to zero takes {} of the time{}", percent(share),
                              at_place(facts, "zero_grad.where"));
  finding.evidence = {part_words(facts, "zero_grad")};
  finding.cure = "zero_grad(set_to_none=True), the default: backward then writes gradients instead of adding to zeros";
  finding.option = "set_to_none=True";
  finding.in_host = true;
  const Reach reach = on_gpu(facts) ? kReachOnGpu : keeps_freed_memory(facts) ? kReach : kUnsure;
  finding.gain = predict(facts.periods, part_of_time("zero_grad"), reach);
  return finding;
}

}  // namespace

const Rule kZeroGrad = {
    .id = "zero_grad_not_none",
    .level = Level::kScript,
    .signal = "time in zero_grad(set_to_none=False)",
    .threshold = "2 % of the time",
    .source = "the smallest gain that is worth a change",
    .disproof = "code of the script reads .grad of parameters that got none: it must expect None first",
    .judge = judge,
};

}  // namespace stoker::observe::doctor
