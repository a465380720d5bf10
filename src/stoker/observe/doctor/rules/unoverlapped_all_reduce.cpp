// SPDX-License-Identifier: Apache-2.0
// Ranks communicate while the device computes nothing.
#include "stoker/observe/doctor/rules/all.h"
#include "stoker/observe/doctor/rules/rule_parts.h"

namespace stoker::observe::doctor {
namespace {

constexpr double kMost = 0.05;                       // of the time
constexpr Reach kReach = {.low = 0.2, .high = 0.9};  // the last bucket cannot overlap with anything

Judgement judge(const Facts& facts) {
  if (facts.source != "trace") {
    return Abstained{"a recorded trace"};
  }
  const double share = facts.share("communication").value_or(0);
  if (share < kMost) {
    return Healthy{};
  }
  Finding finding;
  finding.claim = fmt::format("The device only communicates {} of the time", percent(share));
  finding.evidence = idle_words(facts, "communication");
  finding.cure =
      "overlap it with the backward pass (DistributedDataParallel with buckets); accumulate under no_sync(); balance "
      "the ranks";
  finding.gain = predict(facts.periods, part_of_time("communication"), kReach);
  return finding;
}

}  // namespace

const Rule kUnoverlappedAllReduce = {
    .id = "unoverlapped_all_reduce",
    .level = Level::kTrace,
    .signal = "time in which a device communicates and neither computes nor copies",
    .threshold = "5 % of the time",
    .source = "diagnosis cases 60 and 61: 2.2 times by reducing once per optimizer step, 1.58 times by balanced ranks",
    .disproof = "another rank arrives later each time: then that rank is the cause (give the traces of all ranks)",
    .judge = judge,
};

}  // namespace stoker::observe::doctor
