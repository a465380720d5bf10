// SPDX-License-Identifier: Apache-2.0
#include "stoker/observe/doctor/examine.h"

#include <algorithm>

#include "stoker/base/fmt.h"

namespace stoker::observe::doctor {
namespace {

constexpr std::int64_t kFewSteps = 10;

std::string speedup_words(const Prediction& gain) {
  return fmt::format("{:.2f} times as fast ({:.2f} to {:.2f})", gain.speedup, gain.low, gain.high);
}

std::string verdict_of(const Facts& facts, const Diagnosis& diagnosis) {
  if (facts.steps() < kFewSteps) {
    return fmt::format("Only {} steps are recorded: too few to tell.", facts.steps());
  }
  const auto first = diagnosis.found.begin();
  if (first == diagnosis.found.end() || !first->worth_saying()) {
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
  if (facts.steps() >= kFewSteps) {
    for (const Rule& rule : rules()) {
      Judgement judgement = rule.judge(facts);
      if (auto* const finding = std::get_if<Finding>(&judgement)) {
        diagnosis.found.push_back({&rule, std::move(*finding)});
      } else if (const auto* const abstained = std::get_if<Abstained>(&judgement)) {
        diagnosis.undecided.push_back({&rule, abstained->missing});
      } else {
        diagnosis.healthy.push_back(&rule);
      }
    }
  }
  std::ranges::stable_sort(diagnosis.found, std::ranges::greater(),
                           [](const Found& each) { return each.finding.gain.speedup; });
  diagnosis.verdict = verdict_of(facts, diagnosis);
  return diagnosis;
}

}  // namespace stoker::observe::doctor
