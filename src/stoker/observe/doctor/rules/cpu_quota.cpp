// SPDX-License-Identifier: Apache-2.0
// The container's CPU quota is used up: the kernel stops all threads until the next period.
#include <cstdlib>

#include "stoker/observe/doctor/rules/all.h"
#include "stoker/observe/doctor/rules/rule_parts.h"

namespace stoker::observe::doctor {
namespace {

// Of the time that the training thread waits for a core if operators have more threads than the quota has cores. With
// two threads and a quota of one core three networks saved 0.8, 0.4 and 0.5 of it (bench/results/doctor-cures.txt): the
// rest of the waiting is the quota's.
constexpr Reach kWithFewerThreads = {.low = 0.4, .high = 0.9};

int threads_of_operators(const Facts& facts) {
  const std::string plan(facts.word("plan.intra_op"));
  return plan.empty() ? static_cast<int>(facts.figure("switch.threads").value_or(1)) : std::atoi(plan.c_str());
}

Judgement judge(const Facts& facts) {
  const auto throttled = facts.figure("cgroup.throttled_share");
  if (!throttled) {
    return facts.figure("machine.busy_cores") ? Judgement(Healthy{})  // the monitor ran, and there is no quota
                                              : Abstained{"periods in which the quota was used up (monitor)"};
  }
  if (!quota_is_used_up(facts)) {
    return Healthy{};
  }
  const double stopped = facts.figure("cgroup.throttled_cores").value_or(0);
  const double used = facts.figure("process.cpu_cores").value_or(0);
  Finding finding;
  finding.claim = fmt::format(
      "The container's CPU quota is used up in {} of its periods: the kernel stops the training", percent(*throttled));
  finding.evidence = {
      fmt::format("quota used up in {} of the periods (monitor)", percent(*throttled)),
      fmt::format("threads stopped for {:.2f} s per second; {:.2f} cores used (monitor)", stopped, used)};
  finding.cure = "a larger quota";
  finding.in_host = true;
  const auto limit = facts.figure("cgroup.cpu_limit_cores"), waiting = facts.figure("threads.main.waiting_cores");
  if (limit) {
    finding.evidence.push_back(fmt::format("quota: {:.3g} cores (monitor)", *limit));
  }
  if (const int threads = std::max(static_cast<int>(limit.value_or(1)), 1);
      limit && threads_of_operators(facts) > threads) {
    finding.cure = "as many threads as the quota has cores, or a larger quota";
    finding.option = fmt::format(
        fmt::runtime(facts.source == Source::kRun ? "threads=auto intra_op={}" : "torch.set_num_threads({})"), threads);
    if (waiting) {
      finding.gain = predict(facts.periods, share_of_time(std::min(*waiting, 0.95)), kWithFewerThreads);
      return finding;
    }
  }
  const double lost = stopped + used > 0 ? stopped / (stopped + used) : 0;
  finding.gain = predict(facts.periods, share_of_time(std::min(lost, *throttled)), {.low = 0.1, .high = 1});
  return finding;
}

}  // namespace

const Rule kCpuQuota = {
    .id = "cpu_quota",
    .level = Level::kMonitor,
    .signal = "periods of the cgroup in which its quota was used up; seconds that threads were stopped",
    .threshold = "5 % of the periods",
    .source = "ollama/ollama#17916: 3115 of 4567 periods with threads sized by the host; 5 % is a choice far below",
    .disproof = "a larger quota makes no step faster",
    .judge = judge,
};

}  // namespace stoker::observe::doctor
