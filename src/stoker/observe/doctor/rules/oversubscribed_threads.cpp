// SPDX-License-Identifier: Apache-2.0
// The program has more threads that compute than cores: they take turns, and operators wait for their slowest thread.
#include "stoker/observe/doctor/rules/all.h"
#include "stoker/observe/doctor/rules/rule_parts.h"

namespace stoker::observe::doctor {
namespace {

constexpr double kElsewhere = 0.5;  // cores; beyond it the neighbour is the cause
constexpr double kWaiting = 0.05;   // of the time, ready without a core

// Threads of all kinds that are ready to run, on a core or not.
double runnable(const Facts& facts) {
  double sum = 0;
  for (const auto& [name, figure] : facts.figures) {
    const bool thread = name.starts_with("threads.");
    sum += thread && (name.ends_with(".cpu_cores") || name.ends_with(".waiting_cores")) ? figure.value : 0;
  }
  return sum;
}

Judgement judge(const Facts& facts) {
  const auto waiting = facts.figure("threads.main.waiting_cores"), others = busy_elsewhere(facts);
  const auto cores = cores_of(facts);
  if (!waiting || !others || !cores) {
    return Abstained{"waiting for a core, by thread (monitor)"};
  }
  const double ready = runnable(facts);
  if (*others >= kElsewhere || *waiting < kWaiting || ready < *cores) {
    return Healthy{};
  }
  Finding finding;
  finding.claim = fmt::format(
      "{:.1f} threads of this program compute on {:.3g} cores, and the training thread waits "
      "{} of the time for one",
      ready, *cores, percent(*waiting));
  finding.evidence = {fmt::format("main thread: ready without a core {} of the time (monitor)", percent(*waiting)),
                      fmt::format("other programs: {:.2f} cores (monitor)", *others)};
  for (const char* key : {"plan.threads", "plan.intra_op"}) {
    if (const std::string_view value = facts.word(key); !value.empty()) {
      finding.evidence.push_back(fmt::format("{}={} (plan)", std::string_view(key).substr(5), value));
    }
  }
  finding.cure = "as many threads as cores: let Stoker choose";
  finding.option = "threads=auto intra_op=auto";
  finding.gain = predict(facts.periods, share_of_time(std::min(*waiting, 0.95)), {.low = 0.3, .high = 1.2});
  return finding;
}

}  // namespace

const Rule kOversubscribedThreads = {
    .id = "oversubscribed_threads",
    .level = Level::kMonitor,
    .signal = "time that threads of the program wait for a core; cores that it may use; busy cores elsewhere",
    .threshold =
        "the main thread waits 5 % of the time, more threads are ready than cores, and less than half a core "
        "is busy elsewhere",
    .source = "docs/design.md, promise 9: beside a busy core two threads were 4 to 19 times slower than one",
    .disproof = "fewer threads make no step faster: then another program or a quota takes the cores",
    .judge = judge,
};

}  // namespace stoker::observe::doctor
