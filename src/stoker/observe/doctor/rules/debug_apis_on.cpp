// SPDX-License-Identifier: Apache-2.0
// A switch for debugging was left on.
#include "stoker/observe/doctor/rules/all.h"
#include "stoker/observe/doctor/rules/rule_parts.h"

namespace stoker::observe::doctor {
namespace {

constexpr double kMost = 0.02;  // of the time
// Of the time of a backward pass whose gradients are checked for NaN: 22 of 36 ms (tests/doctor/cases/anomaly.py).
constexpr double kChecking = 0.5;

// Share of the looks at the training in which Python formatted a stack, as anomaly mode does for each operator.
double formatting(const Facts& facts) {
  double all = 0, some = 0;
  for (const Site& site : facts.sites) {
    const bool own = !site.part.starts_with("loader.");
    all += own ? static_cast<double>(site.looks) : 0;
    some += own && (site.module == "traceback" || site.module == "linecache") ? static_cast<double>(site.looks) : 0;
  }
  return all > 0 ? some / all : 0;
}

Judgement judge(const Facts& facts) {
  if (auto other = without_script(facts)) {
    return *other;
  }
  Finding finding;
  if (facts.word("switch.anomaly") == "true") {
    const double stacks = formatting(facts), backward = facts.share("backward").value_or(0);
    finding.claim = "Anomaly detection is on: each operator stores its stack, and each gradient is checked for NaN";
    finding.evidence = {fmt::format("formatting stacks: {} of the time (script)", percent(stacks)),
                        part_words(facts, "backward")};
    finding.cure = "torch.autograd.set_detect_anomaly(True) only while you look for a NaN";
    finding.option = "torch.autograd.set_detect_anomaly(False)";
    finding.gain = predict(facts.periods, share_of_time(std::min(stacks + kChecking * backward, 0.95)),
                           {.low = 0.95, .high = 1.65});
  } else if (facts.word("switch.profiler") == "true") {
    finding.claim = "A profiler records every step";
    finding.evidence = {"torch.autograd's profiler is on (script)"};
    finding.cure = "a schedule that records a few steps: torch.profiler.schedule(wait=..., warmup=1, active=3)";
    // A burst took 1.02 to 1.07 of a step's time for a CNN and a GPT, and 1.85 where a step takes 0.1 ms
    // (bench/results/profile.txt).
    finding.gain = predict(facts.periods, share_of_time(0.06), {.low = 0.3, .high = 2});
  } else {
    return Healthy{};
  }
  return finding.gain.gain() < kMost ? Judgement(Healthy{}) : Judgement(std::move(finding));
}

}  // namespace

const Rule kDebugApis = {
    .id = "debug_apis_on",
    .level = Level::kScript,
    .signal = "switches of anomaly detection and the profiler; time in which Python formats stacks",
    .threshold = "predicted gain of 2 %",
    .source = "Lightning-AI/pytorch-lightning#17359: 2.5 times as slow with anomaly detection",
    .disproof = "the step takes as long with the switch off",
    .judge = judge,
};

}  // namespace stoker::observe::doctor
