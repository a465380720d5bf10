// SPDX-License-Identifier: Apache-2.0
// One rank works longer than the others in most steps, and they wait for it.
#include "stoker/observe/doctor/rules/all.h"
#include "stoker/observe/doctor/rules/rule_parts.h"

namespace stoker::observe::doctor {
namespace {

constexpr double kMost = 0.1;          // of the time of a rank that waits
constexpr double kMostOfShared = 0.2;  // of one whose cores are shared: such ranks wait without a cause, too

Judgement judge(const Facts& facts) {
  if (auto other = without_ranks(facts)) {
    return *other;
  }
  const auto waiting = facts.figure("ranks.waiting_share"), slowest = facts.figure("ranks.slowest_share");
  // The cure makes it as fast as the others, whose waiting is spread over all ranks in that share.
  const double ranks = std::max(facts.figure("ranks.seen").value_or(2), 2.0);
  const double others = std::min(*waiting * ranks / (ranks - 1), 0.9);
  const bool trace = facts.source == Source::kTrace;
  if (others < (ranks_share_cores(facts) ? kMostOfShared : kMost) || *slowest < kSameRank) {
    return Healthy{};
  }
  Finding finding;
  finding.claim = fmt::format("Rank {:.0f} is the slowest{}: the others wait {} of the time for it",
                              facts.figure("ranks.slowest").value_or(0),
                              trace ? "" : fmt::format(" in {} of the steps", percent(*slowest)), percent(others));
  finding.evidence = {fmt::format("{} of {:.0f} ranks ({})",
                                  trace ? "time in collectives" : "work by step, without waiting,",
                                  facts.figure("ranks.seen").value_or(0), recorder(facts))};
  finding.cure = "look at that rank alone: its data, its cores, its device; or give it less to do";
  // Ranks on cores of one machine also take each other's memory bandwidth: 0.45 of it came back for a perceptron, and
  // 0.8 to all of it for two other networks (bench/results/doctor-scripts.txt).
  finding.gain = predict(facts.periods, share_of_time(others), {.low = 0.4, .high = 1.1});
  return finding;
}

}  // namespace

const Rule kStraggler = {
    .id = "straggler",
    .level = Level::kScript,
    .signal = "work of each rank per step, without waiting for others; of traces, waiting in collectives",
    .threshold =
        "the others wait 10 % of the time, on shared cores 20 %, and for the same rank in three quarters of the steps",
    .source = "a choice: ranks that share cores wait for each other without a cause, too",
    .disproof = "the ranks change places with the order of their devices",
    .judge = judge,
};

}  // namespace stoker::observe::doctor
