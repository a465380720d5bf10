// SPDX-License-Identifier: Apache-2.0
// The program has more threads that compute than cores: they take turns, and operators wait for their slowest thread.
#include "stoker/observe/doctor/rules/all.h"
#include "stoker/observe/doctor/rules/rule_parts.h"

namespace stoker::observe::doctor {
namespace {

constexpr double kElsewhere = 0.5;  // cores; beyond it the neighbour is the cause
constexpr double kFewCores = 0.1;   // of helping threads: less does nothing
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

// Cores that workers fill: a part of one does not count, and those that wait for a disk fill none. Twelve workers that
// slept computed on 0.2 cores of two, and one thread less for the operators made the steps 1.4 times as long
// (tests/doctor/cases/slow_storage.py, a convolutional network).
double busy_workers(const Facts& facts) {
  const double workers = facts.figure("loader.workers").value_or(0);
  const auto computing = facts.figure("threads.workers.cpu_cores");
  return computing ? std::min(std::floor(*computing), workers) : workers;
}

// Whether fewer threads would be possible. Workers with one thread each are not too many threads: then the cores are
// what limits the training. A perceptron on photographs with two loader threads waited 0.42 of the time for a core, and
// was slower with fewer.
bool can_have_fewer(const Facts& facts) {
  if (facts.source == Source::kRun) {
    return facts.word("plan.intra_op") != "1";
  }
  const double each = facts.figure("loader.threads_per_worker").value_or(1);
  const auto threads = facts.figure("switch.threads");  // of a process unknown: threads that help tell
  if (threads && cores_of(facts) && *threads + busy_workers(facts) * each <= *cores_of(facts)) {
    return false;  // others wait, too: a tracker's own thread
  }
  return (threads.value_or(2) > 1 && facts.figure("threads.unnamed.cpu_cores").value_or(0) > kFewCores) || each > 1;
}

void add_cure(const Facts& facts, double cores, Finding& finding) {
  if (facts.source == Source::kRun) {
    finding.cure = "as many threads as cores: let Stoker choose";
    finding.option = "threads=auto intra_op=auto";
    return;
  }
  const double each = facts.figure("loader.threads_per_worker").value_or(1);
  if (each > 1) {
    finding.evidence.push_back(fmt::format("{:.0f} workers with {:.0f} threads each (script)",
                                           facts.figure("loader.workers").value_or(0), each));
    finding.cure = "one thread in each worker";
    finding.option = "worker_init_fn=lambda worker: torch.set_num_threads(1)";
    return;
  }
  const double workers = busy_workers(facts);
  const int threads = std::max(static_cast<int>(cores - workers), 1);
  finding.evidence.push_back(fmt::format("threads that help operators: {:.2f} cores; {:.0f} workers compute (monitor)",
                                         facts.figure("threads.unnamed.cpu_cores").value_or(0), workers));
  finding.cure = "fewer threads for the operators of the training";
  finding.option = fmt::format("torch.set_num_threads({})", threads);
}

Judgement judge(const Facts& facts) {
  const auto waiting = facts.figure("threads.main.waiting_cores"), others = busy_elsewhere(facts);
  const auto cores = cores_of(facts);
  if (!waiting || !others || !cores) {
    return Abstained{"waiting for a core, by thread (monitor)"};
  }
  const double ready = runnable(facts);
  if (quota_is_used_up(facts) && facts.figure("loader.threads_per_worker").value_or(1) <= 1) {
    return Healthy{};  // cpu_quota tells
  }
  if (*others >= kElsewhere || *waiting < kWaiting || ready < *cores || !can_have_fewer(facts)) {
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
  add_cure(facts, *cores, finding);
  finding.in_host = true;
  // Three networks on 2 cores saved 0.9, 1.15 and 1.2 of it (bench/results/doctor-scripts.txt).
  finding.gain = predict(facts.periods, share_of_time(std::min(*waiting, 0.95)), {.low = 0.8, .high = 1.25});
  return finding;
}

}  // namespace

const Rule kOversubscribedThreads = {
    .id = "oversubscribed_threads",
    .level = Level::kMonitor,
    .signal = "time that threads of the program wait for a core; cores that it may use; busy cores elsewhere",
    .threshold =
        "the main thread waits 5 % of the time, more threads are ready than cores, and less than half a core "
        "is busy elsewhere; operators have more than one thread, and no quota is used up; in a script, threads of "
        "operators and of workers that compute are more than cores",
    .source = "docs/design.md, promise 9: beside a busy core two threads were 4 to 19 times slower than one",
    .disproof = "fewer threads make no step faster: then another program or a quota takes the cores",
    .judge = judge,
};

}  // namespace stoker::observe::doctor
