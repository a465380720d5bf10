// SPDX-License-Identifier: Apache-2.0
// A few steps take much longer than the others, and together they cost time.
#include "stoker/observe/doctor/rules/all.h"
#include "stoker/observe/doctor/rules/rule_parts.h"

namespace stoker::observe::doctor {
namespace {

constexpr double kMost = 0.02;  // of the time

bool is_pause(const SlowStep& step) { return step.part == "checkpoint" || step.part == "evaluation"; }

Judgement judge(const Facts& facts) {
  if (facts.source != Source::kRun || facts.seconds() <= 0) {
    return Abstained{"records of slow steps (slow_step)"};
  }
  std::map<std::string, double> by_cause;
  double extra = 0;
  std::int64_t count = 0;
  for (const SlowStep& step : facts.slow_steps) {
    if (!is_pause(step)) {
      const double more = step.seconds - step.usual_seconds;
      by_cause[step.cause.empty() ? "no known cause, in " + step.part : step.cause] += more;
      extra += more;
      ++count;
    }
  }
  const double share = extra / facts.seconds();
  if (share < kMost) {
    return Healthy{};
  }
  const auto worst = std::ranges::max_element(by_cause, {}, [](const auto& each) { return each.second; });
  Finding finding;
  finding.claim = fmt::format("{} slow step{} cost{} {} of the time; mostly: {}", count, count == 1 ? "" : "s",
                              count == 1 ? "s" : "", percent(share), worst->first);
  finding.evidence = {fmt::format("{:.3g} s more than usual in {} steps (slow_step)", extra, count),
                      fmt::format("{}: {:.3g} s of it", worst->first, worst->second)};
  finding.cure = "remove that cause";
  finding.gain = predict(facts.periods, share_of_time(std::min(share, 0.9)), {.low = 0.5, .high = 1});
  return finding;
}

}  // namespace

const Rule kSpikes = {
    .id = "spikes",
    .level = Level::kRun,
    .signal = "steps that took three times the median of the 64 before; their causes",
    .threshold = "together 2 % of the time, without checkpoints and evaluations",
    .source = "the smallest gain that is worth a change",
    .disproof = "the same steps are slow in each run with the same data: then the samples are the cause",
    .judge = judge,
};

}  // namespace stoker::observe::doctor
