// SPDX-License-Identifier: Apache-2.0
// Batches are copied to the device while it computes nothing.
#include "stoker/observe/doctor/rules/all.h"
#include "stoker/observe/doctor/rules/rule_parts.h"

namespace stoker::observe::doctor {
namespace {

constexpr double kMost = 0.03;                     // of the time
constexpr Reach kReach = {.low = 0.4, .high = 1};  // a copy beside computing slows both a little

Judgement judge(const Facts& facts) {
  Judgement judgement = judge_trace_part(
      facts, {.part = "copy",
              .most = kMost,
              .reach = kReach,
              .in_marked_steps = false,
              .claim = "The device only copies {} of the time",
              .cure = "pinned memory and non_blocking=True, and the next batch copied during this step"});
  const auto pageable = facts.figure("copies.pageable_share");
  if (auto* const finding = std::get_if<Finding>(&judgement); finding != nullptr && pageable) {
    finding->evidence.push_back(
        fmt::format("from or to pageable memory: {} of the copying (trace)", percent(*pageable)));
  }
  return judgement;
}

}  // namespace

const Rule kSerialH2d = {
    .id = "serial_h2d",
    .level = Level::kTrace,
    .signal = "time in which a device copies and neither computes nor communicates; names of copies",
    .threshold = "3 % of the time",
    .source =
        "one percent more than the smallest gain that is worth a change, since a copy beside computing slows both",
    .disproof = "pinned and asynchronous copies leave the time as it is: then the link is the limit",
    .judge = judge,
};

}  // namespace stoker::observe::doctor
