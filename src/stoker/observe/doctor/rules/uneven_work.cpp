// SPDX-License-Identifier: Apache-2.0
// Ranks get unequal work, now this one and now that one, and wait for each other.
#include "stoker/observe/doctor/rules/all.h"
#include "stoker/observe/doctor/rules/rule_parts.h"

namespace stoker::observe::doctor {
namespace {

constexpr double kMost = 0.05;         // of the time
constexpr double kMostOfShared = 0.1;  // on shared cores, as in straggler.cpp

Judgement judge(const Facts& facts) {
  if (auto other = without_ranks(facts)) {
    return *other;
  }
  const auto waiting = facts.figure("ranks.waiting_share"), slowest = facts.figure("ranks.slowest_share");
  if (*waiting < (ranks_share_cores(facts) ? kMostOfShared : kMost) || *slowest >= kSameRank) {
    return Healthy{};
  }
  Finding finding;
  finding.claim =
      fmt::format("Ranks get unequal work in each step, and wait {} of the time for each other", percent(*waiting));
  finding.evidence = {fmt::format("{:.0f} ranks, and the slowest one changes ({})",
                                  facts.figure("ranks.seen").value_or(0), recorder(facts))};
  finding.cure = "batches of equal work: samples of like length together, or an equal number of tokens per rank";
  finding.gain = predict(facts.periods, share_of_time(*waiting), {.low = 0.4, .high = 1.2});
  return finding;
}

}  // namespace

const Rule kUnevenWork = {
    .id = "uneven_work",
    .level = Level::kScript,
    .signal = "work of each rank per step, without waiting for others; of traces, waiting in collectives",
    .threshold = "5 % of the time, on shared cores 10 %, and no rank is the slowest in three quarters of the steps",
    .source = "Tencent-Hunyuan/UniRL#45: 28.4 to 15.3 s with balanced ranks; on shared cores as for straggler",
    .disproof = "the waiting is as long with equal batches: then the network is the limit",
    .judge = judge,
};

}  // namespace stoker::observe::doctor
