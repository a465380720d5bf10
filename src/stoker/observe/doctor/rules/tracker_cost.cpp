// SPDX-License-Identifier: Apache-2.0
// Logs and trackers hold the training thread up.
#include "stoker/observe/doctor/rules/all.h"
#include "stoker/observe/doctor/rules/rule_parts.h"

namespace stoker::observe::doctor {
namespace {

constexpr double kMost = 0.02;

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
  const double ratio = *share > 0 ? own / *share : 0;
  finding.in_host = true;
  finding.gain = predict(facts.periods,
                         [ratio, beside](const Period& each) {
                           return std::min(ratio * each.part("logging") + beside * each.seconds, 0.95 * each.seconds);
                         },
                         {.low = 0.7});
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
