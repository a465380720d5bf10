// SPDX-License-Identifier: Apache-2.0
// The optimizer updates one tensor after the other, with several operators each.
#include "stoker/observe/doctor/inventory.h"
#include "stoker/observe/doctor/rules/all.h"
#include "stoker/observe/doctor/rules/rule_parts.h"

namespace stoker::observe::doctor {
namespace {

constexpr double kMost = 0.05;  // of the time
// Of the optimizer's time. tests/doctor/cases/unfused_optimizer.py: 34.5 ms per step, fused 6.9 ms.
constexpr double kSaved = 0.75;

Judgement judge(const Facts& facts) {
  if (auto other = without_script(facts)) {
    return *other;
  }
  const std::string_view name = facts.word("switch.optimizer.name");
  if (name.empty()) {
    return Abstained{"the optimizer's settings: no step of an optimizer was seen"};
  }
  const double share = facts.share("optimizer").value_or(0);
  if (share < kMost || !has_fused_update(name) || facts.word("switch.optimizer.fused") == "true") {
    return Healthy{};
  }
  Finding finding;
  finding.claim =
      fmt::format("The optimizer takes {} of the time: {} updates {:.0f} tensors with several operators each",
                  percent(share), name, facts.figure("switch.optimizer.tensors").value_or(0));
  finding.evidence = {part_words(facts, "optimizer")};
  finding.cure = fmt::format("one operator for all tensors: torch.optim.{}(..., fused=True)", name);
  finding.option = "fused=True";
  finding.in_host = true;
  finding.gain = predict(facts.periods, [](const Period& each) { return kSaved * each.part("optimizer"); },
                         {.low = 0.7, .high = 1.3});
  return finding;
}

}  // namespace

const Rule kOptimizerUnfused = {
    .id = "optimizer_unfused",
    .level = Level::kScript,
    .signal = "time in the optimizer's step; its flag `fused`",
    .threshold = "5 % of the time",
    .source = "a choice; 130 small tensors take 34.5 ms per step, fused 6.9 ms (tests/doctor/cases)",
    .disproof = "the tensors are so large that memory bandwidth is the limit: then a fused optimizer takes as long",
    .judge = judge,
};

}  // namespace stoker::observe::doctor
