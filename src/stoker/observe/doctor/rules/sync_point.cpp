// SPDX-License-Identifier: Apache-2.0
// The host waits for the device, and the device then waits for the host: a read of a value, a synchronize call.
#include "stoker/observe/doctor/rules/all.h"
#include "stoker/observe/doctor/rules/rule_parts.h"

namespace stoker::observe::doctor {
namespace {

constexpr double kMost = 0.02;                       // of the time
constexpr Reach kReach = {.low = 0.2, .high = 0.9};  // other waits take the place of some

constexpr const char* kCure =
    "read values of the device less often, and later: .item(), printing and branching on tensors wait for it";

// Of a script whose host is slower than its GPU, reads cost what the host spends in them, wait or not.
Judgement judge_reads(const Facts& facts, const WaitingCalls& reads, Judgement judgement) {
  const double share = std::min(reads.share, host_share_above_device(facts));
  auto* const finding = std::get_if<Finding>(&judgement);
  if (finding != nullptr) {
    finding->evidence.insert(finding->evidence.end(), reads.lines.begin(), reads.lines.end());
  }
  if (share < kMost || share <= facts.share("sync").value_or(0)) {
    return judgement;
  }
  Finding found;
  found.claim = fmt::format("The host reads values of the GPU {} of the time", percent(share));
  found.evidence = reads.lines;
  found.cure = kCure;
  found.gain = predict(facts.periods, share_of_time(share), {.low = 0.6, .high = 1.2});
  return found;
}

Judgement judge(const Facts& facts) {
  Judgement judgement =
      judge_trace_part(facts, {.part = "sync",
                               .most = kMost,
                               .reach = kReach,
                               .in_marked_steps = false,
                               .claim = "The device stands still {} of the time because the host waited for it",
                               .cure = kCure});
  const WaitingCalls reads = waiting_calls(facts, {"read", "to_cpu", "synchronize"});
  return reads.lines.empty() ? judgement : judge_reads(facts, reads, std::move(judgement));
}

}  // namespace

const Rule kSyncPoint = {
    .id = "sync_point",
    .level = Level::kTrace,
    .signal = "idle time of the device while the host was in a call that waits for it",
    .threshold = "2 % of the time; calls that cost no idle time do not count",
    .source = "roboflow/rf-detr#1492: 149 of 164 waits removed gained 0.2 %, since the device was busy meanwhile",
    .disproof = "without the call the next one waits as long: then it only showed the time of the work before it",
    .judge = judge,
};

}  // namespace stoker::observe::doctor
