// SPDX-License-Identifier: Apache-2.0
#include "stoker/observe/doctor/examine.h"

#include <algorithm>

#include "stoker/base/fmt.h"

namespace stoker::observe::doctor {
namespace {

// Of a run. A trace is a choice of steps by somebody who looks at them.
constexpr std::int64_t kFewSteps = 10;

constexpr double kFewSeconds = 3;  // of a process, whose steps nobody counts

bool has_enough(const Facts& facts) {
  return facts.source == Source::kProcess ? facts.seconds() >= kFewSeconds
                                          : facts.steps() >= (facts.source == Source::kTrace ? 1 : kFewSteps);
}

// Of the time. A device that works less has a reason for it, whether a rule names it or not.
constexpr double kBusyDevice = 0.8;

// Share of the time in which the device of a trace worked.
double busy_share(const Facts& facts) {
  double sum = 0;
  for (const char* part : {"compute", "communication", "copy", "overlap"}) {
    sum += facts.share(part).value_or(0);
  }
  return sum;
}

// What the host of a script saves within steps counts until the GPU is the limit.
void limit_by_gpu(const Facts& facts, Prediction& gain) {
  const double step = facts.burst->figure("step.seconds").value_or(0);
  const double device = facts.burst->figure("device.seconds").value_or(0);
  double in_steps = 1;
  for (const Period& period : facts.periods) {
    in_steps -= period.paused() / facts.seconds();
  }
  if (step > 0 && device > 0) {
    const double most = 1 / (1 - std::max(in_steps * (1 - device / step), 0.0));
    gain = {std::min(gain.speedup, most), std::min(gain.low, most), std::min(gain.high, most)};
  }
}

// A rule of traces reads a script's burst, if the script's own records do not show its cause.
Judgement judge(const Rule& rule, const Facts& facts) {
  Judgement judgement = rule.judge(facts);
  auto* const finding = std::get_if<Finding>(&judgement);
  if (facts.burst != nullptr && finding == nullptr && rule.level == Level::kTrace) {
    return rule.judge(*facts.burst);
  }
  if (facts.burst != nullptr && finding != nullptr && finding->in_host) {
    limit_by_gpu(facts, finding->gain);
  }
  return judgement;
}

std::string speedup_words(const Prediction& gain) {
  return fmt::format("{:.2f} times as fast ({:.2f} to {:.2f})", gain.speedup, gain.low, gain.high);
}

std::string verdict_of(const Facts& facts, const Diagnosis& diagnosis) {
  const auto first = diagnosis.found.begin();
  if (first != diagnosis.found.end() && !first->finding.danger.empty()) {
    const Finding& finding = first->finding;
    return fmt::format("{}: {}. The cure: {}.", finding.claim, finding.danger, finding.cure);
  }
  if (const std::string_view state = facts.word("script.state"); !state.empty()) {
    return fmt::format("No steps were found: {}.", state);
  }
  if (!has_enough(facts)) {
    if (facts.source == Source::kProcess) {
      return fmt::format("It was watched for {:.0f} s only: too short to tell.", facts.seconds());
    }
    return fmt::format("Only {} steps are recorded: too few to tell.", facts.steps());
  }
  if (first == diagnosis.found.end() || !first->worth_saying()) {
    const Facts& device = facts.burst == nullptr ? facts : *facts.burst;
    if (const double busy = busy_share(device); device.source == Source::kTrace && busy < kBusyDevice) {
      if (busy == 0) {
        return "The trace has no work of a device: of operators on a processor no rule knows a cause yet.";
      }
      return fmt::format(
          "No cause was found whose cure would gain {:.0f} % or more, but the device worked {:.0f} % of the time.",
          100 * kWorthSaying, 100 * busy);
    }
    if (facts.source == Source::kProcess) {
      return fmt::format("From outside nothing was found whose cure would gain {:.0f} % or more.", 100 * kWorthSaying);
    }
    return fmt::format("Healthy: nothing was found whose cure would gain {:.0f} % or more.", 100 * kWorthSaying);
  }
  const Finding& finding = first->finding;
  return fmt::format("{}. {} would make it {}.", finding.claim,
                     finding.option.empty() ? "The cure (" + finding.cure + ")" : finding.option,
                     speedup_words(finding.gain));
}

}  // namespace

Diagnosis examine(const Facts& facts) {
  Diagnosis diagnosis;
  const bool enough = has_enough(facts);
  for (const Rule& rule : rules()) {
    if (enough || !rule.needs_steps) {
      Judgement judgement = judge(rule, facts);
      if (auto* const finding = std::get_if<Finding>(&judgement)) {
        diagnosis.found.push_back({&rule, std::move(*finding)});
      } else if (const auto* const abstained = std::get_if<Abstained>(&judgement)) {
        diagnosis.undecided.push_back({&rule, abstained->missing});
      } else {
        diagnosis.healthy.push_back(&rule);
      }
    }
  }
  std::ranges::stable_sort(diagnosis.found, std::ranges::greater(), [](const Found& each) {
    const Prediction& gain = each.finding.gain;
    return std::pair(!each.finding.danger.empty(), each.finding.broad ? gain.low : gain.speedup);
  });
  diagnosis.verdict = verdict_of(facts, diagnosis);
  return diagnosis;
}

}  // namespace stoker::observe::doctor
