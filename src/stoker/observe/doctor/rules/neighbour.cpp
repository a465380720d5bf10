// SPDX-License-Identifier: Apache-2.0
// Other programs use the cores: the training thread is ready to run and gets no core.
#include <cmath>
#include <cstdlib>

#include "stoker/observe/doctor/rules/all.h"
#include "stoker/observe/doctor/rules/rule_parts.h"

namespace stoker::observe::doctor {
namespace {

constexpr double kElsewhere = 0.5;  // cores: less is the system's own work
constexpr double kMostWaiting = 0.95;
// Chosen by bench/doctor/cures.py. More than all: cores share caches and memory, too.
constexpr Reach kReach = {.low = 0.9, .high = 1.1};
// Of the time in which several threads would have a core at once by chance, if each waits half of the time. The one
// that has a core spins until its turn is over, and then the other one gets its own: three networks with two threads
// were 24, 25 and 5 times as slow beside two busy programs (bench/results/doctor-cures.txt), where chance says 4.
constexpr double kAtOnce = 0.4;
constexpr double kWaiting = 0.05;  // of the time, ready without a core

// Threads that share the work of an operator.
int operator_threads(const Facts& facts) {
  return facts.source == Source::kRun ? std::atoi(std::string(facts.word("plan.intra_op")).c_str())
                                      : static_cast<int>(facts.figure("switch.threads").value_or(1));
}

// Share of the time in which all threads of an operator have a core: only then it makes progress, since they wait for
// each other at its end.
double running(const Facts& facts, double main_waiting) {
  const auto others = facts.figure("threads.unnamed.waiting_cores");  // OpenMP's
  const int threads = operator_threads(facts);
  const double alone = 1 - std::min(main_waiting, kMostWaiting);
  if (!others || threads < 2) {
    return alone;
  }
  const double waiting = std::min(*others / (threads - 1), kMostWaiting);  // of each of them
  const double in_turns = std::min(2 * std::min(main_waiting, waiting), 1.0);
  return alone * std::pow(1 - waiting, threads - 1) * (1 - (1 - kAtOnce) * in_turns);
}

Judgement judge(const Facts& facts) {
  const auto waiting = facts.figure("threads.main.waiting_cores"), others = busy_elsewhere(facts);
  if (!waiting || !others) {
    return Abstained{"waiting for a core, and busy cores of the machine (monitor)"};
  }
  if (*others < kElsewhere || *waiting < kWaiting || quota_is_used_up(facts)) {
    return Healthy{};
  }
  Finding finding;
  finding.claim = fmt::format("Other programs use {:.1f} cores, and the training thread waits {} of the time for one",
                              *others, percent(*waiting));
  finding.evidence = {fmt::format("main thread: ready without a core {} of the time (monitor)", percent(*waiting)),
                      fmt::format("cores: {:.2f} busy in all, {:.2f} by this program (monitor)",
                                  *facts.figure("machine.busy_cores"), *facts.figure("process.cpu_cores"))};
  finding.cure = "end the other programs (`stoker top` shows them), or give the training cores of its own";
  if (operator_threads(facts) > 1) {
    finding.cure += fmt::format(", or else compute with one thread ({}): several wait for each other",
                                facts.source == Source::kRun ? "intra_op=1 in a new run" : "torch.set_num_threads(1)");
  }
  finding.in_host = true;
  finding.gain = predict(facts.periods, share_of_time(1 - running(facts, *waiting)), kReach);
  return finding;
}

}  // namespace

const Rule kNeighbour = {
    .id = "neighbour",
    .level = Level::kMonitor,
    .signal = "cores busy with other programs; time that the main thread waits for a core",
    .threshold = "half a core elsewhere, and waiting 5 % of the time",
    .source = "two trainings on a quiet machine: 0.03 cores elsewhere, waiting below 0.5 %",
    .disproof = "the waiting stays after the other programs have ended: then own threads are too many",
    .judge = judge,
};

}  // namespace stoker::observe::doctor
