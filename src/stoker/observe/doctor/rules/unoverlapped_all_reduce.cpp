// SPDX-License-Identifier: Apache-2.0
// Ranks communicate while the device computes nothing.
#include "stoker/observe/doctor/rules/all.h"
#include "stoker/observe/doctor/rules/rule_parts.h"

namespace stoker::observe::doctor {
namespace {

constexpr double kMost = 0.05;                       // of the time
constexpr Reach kReach = {.low = 0.2, .high = 0.9};  // the last bucket cannot overlap with anything

Judgement judge(const Facts& facts) {
  return judge_trace_part(facts, {.part = "communication",
                                  .most = kMost,
                                  .reach = kReach,
                                  .in_marked_steps = false,
                                  .claim = "The device only communicates {} of the time",
                                  .cure = "overlap it with the backward pass (DistributedDataParallel with buckets); "
                                          "accumulate under no_sync(); balance the ranks"});
}

}  // namespace

const Rule kUnoverlappedAllReduce = {
    .id = "unoverlapped_all_reduce",
    .level = Level::kTrace,
    .signal = "time in which a device communicates and neither computes nor copies",
    .threshold = "5 % of the time",
    .source =
        "Tencent-Hunyuan/UniRL#45, huggingface/transformers#47340: 1.58 times as fast with balanced ranks; 5 % is a "
        "choice",
    .disproof = "another rank arrives later each time: then that rank is the cause (give the traces of all ranks)",
    .judge = judge,
};

}  // namespace stoker::observe::doctor
