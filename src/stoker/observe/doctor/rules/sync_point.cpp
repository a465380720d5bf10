// SPDX-License-Identifier: Apache-2.0
// The host waits for the device, and the device then waits for the host: a read of a value, a synchronize call.
#include "stoker/observe/doctor/rules/all.h"
#include "stoker/observe/doctor/rules/rule_parts.h"

namespace stoker::observe::doctor {
namespace {

constexpr double kMost = 0.02;                       // of the time
constexpr Reach kReach = {.low = 0.2, .high = 0.9};  // other waits take the place of some

Judgement judge(const Facts& facts) {
  if (facts.source != "trace") {
    return Abstained{"a recorded trace"};
  }
  const double share = facts.share("sync").value_or(0);
  if (share < kMost) {
    return Healthy{};
  }
  Finding finding;
  finding.claim = fmt::format("The device stands still {} of the time because the host waited for it: {}",
                              percent(share), idle_name(facts, "sync"));
  finding.evidence = idle_words(facts, "sync");
  finding.cure =
      "read values of the device less often, and later: .item(), printing and branching on tensors wait for it";
  finding.gain = predict(facts.periods, part_of_time("sync"), kReach);
  return finding;
}

}  // namespace

const Rule kSyncPoint = {
    .id = "sync_point",
    .level = Level::kTrace,
    .signal = "idle time of the device while the host was in a call that waits for it",
    .threshold = "2 % of the time; calls that cost no idle time do not count",
    .source = "diagnosis case 27: 149 waits removed gained 0.2 %, since they were not exposed",
    .disproof = "without the call the next one waits as long: then it only showed the time of the work before it",
    .judge = judge,
};

}  // namespace stoker::observe::doctor
