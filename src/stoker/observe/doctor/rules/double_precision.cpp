// SPDX-License-Identifier: Apache-2.0
// A model computes in float64, which moves twice the bytes and takes twice the time or more.
#include "stoker/observe/doctor/rules/all.h"
#include "stoker/observe/doctor/rules/rule_parts.h"

namespace stoker::observe::doctor {
namespace {

constexpr double kMost = 0.5;  // of the weights
// Of the computing: float32 moves half of the bytes, and a vector unit takes twice as many numbers at once.
constexpr double kSaved = 0.5;

// The forward pass has about half of the backward's operations; what else is in `other` stays.
double computing(const Period& period) {
  const double backward = period.part("backward");
  return backward + period.part("optimizer") + std::min(period.part("other"), backward / 2);
}

Judgement judge(const Facts& facts) {
  if (auto other = without_script(facts)) {
    return *other;
  }
  const auto doubles = facts.figure("switch.optimizer.float64_elements");
  const auto all = facts.figure("switch.optimizer.elements");
  if (!doubles || !all || *all <= 0) {
    return Abstained{"the dtypes of the weights: no step of an optimizer was seen"};
  }
  if (*doubles < kMost * *all) {
    return Healthy{};
  }
  if (on_gpu(facts) && facts.burst == nullptr) {
    return Abstained{"what the GPU computes in a step"};
  }
  Finding finding;
  finding.claim = fmt::format("The model computes in float64: {} of its weights do", percent(*doubles / *all));
  finding.evidence = {fmt::format("{:.0f} elements of torch.float64 (script)", *doubles)};
  finding.cure = "float32: model.float(), and arrays of NumPy by .astype('float32') (results differ a little)";
  finding.option = "model.float()";
  // On a CPU that keeps freed memory a perceptron saved 0.9 of that, a GPT 1.15, a convolutional network 1.5. Elsewhere
  // page faults halve, too: 1.25 and 1.6 (bench/results/doctor-scripts.txt).
  constexpr Reach kKept = {.low = 0.8, .high = 1.5}, kReach = {.low = 1, .high = 1.6};
  if (on_gpu(facts)) {
    finding.gain = predict_less_computing(*facts.burst, kSaved, kReach);
  } else {
    finding.gain = predict(
        facts.periods, [](const Period& each) { return kSaved * computing(each); },
        keeps_freed_memory(facts) ? kKept : kReach);
  }
  return finding;
}

}  // namespace

const Rule kDoublePrecision = {
    .id = "double_precision",
    .level = Level::kScript,
    .signal = "dtypes of the weights that the optimizer changes; time in backward and the optimizer",
    .threshold = "half of the weights' elements",
    .source = "a choice; tests/doctor/cases/double_precision.py",
    .disproof = "the problem needs 53 bits: the loss in float32 stops falling earlier",
    .judge = judge,
};

}  // namespace stoker::observe::doctor
