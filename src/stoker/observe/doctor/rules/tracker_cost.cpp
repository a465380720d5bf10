// SPDX-License-Identifier: Apache-2.0
// Logs and trackers hold the training thread up.
#include "stoker/observe/doctor/rules/all.h"
#include "stoker/observe/doctor/rules/rule_parts.h"

namespace stoker::observe::doctor {
namespace {

constexpr double kMost = 0.02;
// Of the time without a core, and cores of other programs: as in neighbour.cpp.
constexpr double kWaiting = 0.05, kElsewhere = 0.5;
// A case with histograms waited 29 % of the time for a core, since NumPy's threads spin after each of them, and its
// step took 3.5 times as long (tests/doctor/cases/histograms.py, a CNN on 2 cores). Of the time that is known of, three
// networks saved 1.13 to 1.16 (bench/results/doctor-scripts.txt): the rest of a step becomes faster, too.
constexpr Reach kReachOfScripts = {.low = 1.04, .high = 1.24};

// What the threads of a script's tracker take from operators, which wait until all of their threads had a core.
double held_up(const Facts& facts) {
  const double waiting = facts.figure("threads.main.waiting_cores").value_or(0);
  const bool alone = busy_elsewhere(facts).value_or(1) < kElsewhere && facts.figure("loader.workers").value_or(0) == 0;
  if (facts.source != Source::kScript || waiting < kWaiting || !alone) {
    return 0;
  }
  const double threads = std::min(facts.figure("switch.threads").value_or(1), cores_of(facts).value_or(1));
  return 1 - std::pow(1 - std::min(waiting, 1.0), threads);
}

Judgement judge(const Facts& facts) {
  const auto share = facts.share("logging");
  if (!share || facts.source == Source::kTrace) {
    return Abstained{"the time that logging takes (anatomy)"};
  }
  // A thread that waits for a core is held up by other programs, not by a log.
  double computing = 0, spent = 0;
  for (const Period& period : facts.periods) {
    if (const auto found = period.parts.find("logging"); found != period.parts.end()) {
      spent += found->second.seconds;
      computing += std::max(found->second.cpu_seconds, 0.0);
    }
  }
  const auto waiting = facts.figure("threads.main.waiting_cores");
  const double for_a_core = std::min(spent - computing, std::min(waiting.value_or(0), 1.0) * spent);
  const double own = (spent - std::max(for_a_core, 0.0)) / facts.seconds();
  const double beside = facts.figure("tracker.thread_share").value_or(0);
  if (own + beside < kMost) {
    return Healthy{};
  }
  Finding finding;
  finding.claim = fmt::format("Logging takes {} of the time", percent(*share));
  if (beside >= kMost) {
    finding.claim += fmt::format(", and a thread of the tracker has Python's lock for {} of it", percent(beside));
  }
  finding.evidence = {
      part_words(facts, "logging"),
      fmt::format("of it computing: {} ({})", percent(spent > 0 ? computing / spent : 0), recorder(facts))};
  if (const std::string_view sinks = facts.word("plan.log"); !sinks.empty()) {
    finding.evidence.push_back(fmt::format("log={} (plan)", sinks));
  }
  finding.cure = "fewer or faster logs";
  if (facts.word("plan.tensorboard") == "histograms") {
    finding.cure = "no histograms of weights";
    finding.option = "tensorboard=on";
  }
  const double held = held_up(facts);
  if (held > 0) {
    finding.evidence.push_back(
        fmt::format("nothing else computes, and the training waits {} of the time for a core (monitor)",
                    percent(facts.figure("threads.main.waiting_cores").value_or(0))));
  }
  const double ratio = *share > 0 ? own / *share : 0;
  finding.in_host = true;
  const auto saved = [ratio, beside, held](const Period& each) {
    const double logging = ratio * each.part("logging") + beside * each.seconds;
    return std::min(logging + held * std::max(each.seconds - logging, 0.0), 0.95 * each.seconds);
  };
  finding.gain = predict(facts.periods, saved, facts.source == Source::kScript ? kReachOfScripts : Reach{.low = 0.7});
  return finding;
}

}  // namespace

const Rule kTrackerCost = {
    .id = "tracker_cost",
    .level = Level::kRun,
    .signal = "share of time in logging, less its waiting for a core",
    .threshold = "2 % of the time",
    .source = "the smallest gain that is worth a change",
    .disproof = "the time stays with all logs off: then it waits for a core or for memory",
    .judge = judge,
};

}  // namespace stoker::observe::doctor
