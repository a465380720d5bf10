// SPDX-License-Identifier: Apache-2.0
// Ranks that should hold the same parameters do not.
#include "stoker/observe/doctor/rules/all.h"
#include "stoker/observe/doctor/rules/rule_parts.h"

namespace stoker::observe::doctor {
namespace {

Judgement judge(const Facts& facts) {
  if (auto other = without_script(facts)) {
    return *other;
  }
  if (facts.figure("ranks.digests").value_or(0) < 2) {
    return Healthy{};
  }
  Finding finding;
  finding.claim = "The ranks' parameters differ after 40 steps";
  finding.evidence = {fmt::format("{:.0f} different values of one parameter on {:.0f} ranks (script)",
                                  *facts.figure("ranks.digests"), facts.figure("ranks.seen").value_or(0))};
  finding.cure = "call the DistributedDataParallel module itself, not its .module: only its own calls add up gradients";
  finding.danger = "each rank trains a network of its own";
  return finding;
}

}  // namespace

const Rule kRanksDrift = {
    .id = "ranks_drift_apart",
    .level = Level::kScript,
    .signal = "a parameter of each rank after step 40",
    .threshold = "two different values",
    .source = "DistributedDataParallel keeps them equal to the bit",
    .disproof = "a rank changes its parameters on purpose",
    .judge = judge,
};

}  // namespace stoker::observe::doctor
