// SPDX-License-Identifier: Apache-2.0
// Convolutions add a bias that the norm after them subtracts again.
#include "stoker/observe/doctor/rules/all.h"
#include "stoker/observe/doctor/rules/rule_parts.h"

namespace stoker::observe::doctor {
namespace {

constexpr double kMost = 0.25;  // of the convolutions
// Four networks on an H200 took 10 to 14 % less without these biases (bench/results/gpu-h200.txt), since cuDNN adds a
// bias in a kernel of its own, and sums its gradient up in another. On a CPU it is at most 3 % (tips.txt).
constexpr double kSaved = 0.12;
constexpr Reach kReach = {.low = 0.75, .high = 1.25};

Judgement judge(const Facts& facts) {
  if (facts.source != Source::kTrace || !facts.figure("step.seconds")) {
    return Abstained{"the layers of a script on a GPU (stoker doctor -- python ...)"};
  }
  const double biased = facts.figure("layers.biased_before_norm").value_or(0);
  const double all = facts.figure("layers.convolutions").value_or(0);
  if (biased <= 0 || biased < kMost * all) {
    return Healthy{};
  }
  Finding finding;
  finding.claim =
      fmt::format("{:.0f} of {:.0f} convolutions add a bias, and the norm after them takes it away", biased, all);
  finding.evidence = {fmt::format("{:.0f} convolutions with a bias give their output to a norm (script)", biased)};
  finding.cure = "no bias where a norm follows: Conv2d(..., bias=False)";
  const double share = kSaved * biased / all;
  finding.gain = predict_less_computing(facts, share, kReach, share);
  return finding;
}

}  // namespace

const Rule kConvBiasBeforeNorm = {
    .id = "conv_bias_before_norm",
    .level = Level::kTrace,
    .signal = "calls of convolutions with a bias whose output goes to a norm, in one step",
    .threshold = "a quarter of the convolutions",
    .source = "four networks on an H200 with and without: 1.11 to 1.16 times as fast (bench/results/gpu-h200.txt)",
    .disproof = "the step takes as long without them: the norm runs in evaluation mode, or the host is the limit",
    .judge = judge,
};

}  // namespace stoker::observe::doctor
