// SPDX-License-Identifier: Apache-2.0
// One rank works longer than the others in most steps, and they wait for it.
#include "stoker/observe/doctor/rules/all.h"
#include "stoker/observe/doctor/rules/rule_parts.h"

namespace stoker::observe::doctor {
namespace {

constexpr double kMost = 0.05;    // of the time
constexpr double kMostly = 0.75;  // of the steps

Judgement judge(const Facts& facts) {
  if (auto other = without_ranks(facts)) {
    return *other;
  }
  const auto waiting = facts.figure("ranks.waiting_share"), slowest = facts.figure("ranks.slowest_share");
  if (*waiting < kMost || *slowest < kMostly) {
    return Healthy{};
  }
  Finding finding;
  const bool trace = facts.source == Source::kTrace;
  finding.claim = fmt::format("Rank {:.0f} is the slowest{}: the others wait {} of the time for it",
                              facts.figure("ranks.slowest").value_or(0),
                              trace ? "" : fmt::format(" in {} of the steps", percent(*slowest)), percent(*waiting));
  finding.evidence = {fmt::format("{} of {:.0f} ranks ({})",
                                  trace ? "time in collectives" : "work by step, without waiting,",
                                  facts.figure("ranks.seen").value_or(0), recorder(facts))};
  finding.cure = "look at that rank alone: its data, its cores, its device; or give it less to do";
  finding.gain = predict(facts.periods, share_of_time(*waiting), {.low = 0.6, .high = 1.6});
  return finding;
}

}  // namespace

const Rule kStraggler = {
    .id = "straggler",
    .level = Level::kScript,
    .signal = "work of each rank per step, without waiting for others; of traces, waiting in collectives",
    .threshold = "5 % of the time, and the same rank in three quarters of the steps",
    .source = "the smallest gain that is worth a search; a choice",
    .disproof = "the ranks change places with the order of their devices",
    .judge = judge,
};

}  // namespace stoker::observe::doctor
