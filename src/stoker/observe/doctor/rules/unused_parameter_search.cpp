// SPDX-License-Identifier: Apache-2.0
// DistributedDataParallel searches each step for parameters that were not used, and all were.
#include "stoker/observe/doctor/rules/all.h"
#include "stoker/observe/doctor/rules/rule_parts.h"

namespace stoker::observe::doctor {
namespace {

constexpr double kMost = 0.02;  // of the time

Judgement judge(const Facts& facts) {
  if (auto other = without_script(facts)) {
    return *other;
  }
  const auto unused = facts.figure("ranks.unused_bytes"), searching = facts.figure("ranks.searching");
  const auto steps = facts.figure("ranks.step");
  if (!unused || !searching || !steps || *steps < 1 || facts.steps() == 0) {
    return Healthy{};  // it does not search
  }
  const double share = *searching / *steps * static_cast<double>(facts.steps()) / facts.seconds();
  if (*unused > 0 || share < kMost) {
    return Healthy{};
  }
  Finding finding;
  finding.claim = fmt::format("DistributedDataParallel searches for unused parameters {} of the time, and all are used",
                              percent(share));
  finding.evidence = {
      fmt::format("{:.3g} ms per step, and no parameter was unused (script)", 1e3 * *searching / *steps)};
  finding.cure = "no search for parameters that a step did not use";
  finding.option = "find_unused_parameters=False";
  finding.in_host = true;
  finding.gain = predict(facts.periods, share_of_time(std::min(share, 0.95)), {.low = 0.7, .high = 1.3});
  return finding;
}

}  // namespace

const Rule kUnusedParameterSearch = {
    .id = "unused_parameter_search",
    .level = Level::kScript,
    .signal = "time at the end of DistributedDataParallel's forward pass; parameters that the ranks did not use",
    .threshold = "2 % of the time, and no unused parameter",
    .source = "the smallest gain that is worth a change",
    .disproof = "a branch of the model is taken in some steps only: without the search these steps fail",
    .judge = judge,
};

}  // namespace stoker::observe::doctor
