// SPDX-License-Identifier: Apache-2.0
// The host waits for the device, and the device then waits for the host: a read of a value, a synchronize call.
#include "stoker/observe/doctor/rules/all.h"
#include "stoker/observe/doctor/rules/rule_parts.h"

namespace stoker::observe::doctor {
namespace {

constexpr double kMost = 0.02;                       // of the time
constexpr Reach kReach = {.low = 0.2, .high = 0.9};  // other waits take the place of some

Judgement judge(const Facts& facts) {
  return judge_trace_part(
      facts,
      {.part = "sync",
       .most = kMost,
       .reach = kReach,
       .in_marked_steps = false,
       .claim = "The device stands still {} of the time because the host waited for it",
       .cure =
           "read values of the device less often, and later: .item(), printing and branching on tensors wait for it"});
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
