// SPDX-License-Identifier: Apache-2.0
// The gradient scaler skips steps again and again.
#include "stoker/observe/doctor/rules/all.h"
#include "stoker/observe/doctor/rules/rule_parts.h"

namespace stoker::observe::doctor {
namespace {

constexpr double kMost = 0.2;  // of the steps

Judgement judge(const Facts& facts) {
  if (auto other = without_script(facts)) {
    return *other;
  }
  const auto calls = facts.figure("scaler.calls"), halved = facts.figure("scaler.skipped");
  if (!calls || !halved) {
    return Healthy{};
  }
  const double skipped = *halved / *calls, scale = facts.figure("scaler.scale").value_or(0);
  if (skipped < kMost) {
    return Healthy{};
  }
  Finding finding;
  finding.claim = fmt::format("The gradient scaler skipped {} of {:.0f} steps", percent(skipped), *calls);
  finding.evidence = {fmt::format("its scale is now {:.3g}; it began at {:.6g} (script)", scale,
                                  facts.figure("scaler.first").value_or(0))};
  finding.cure =
      "find what makes gradients infinite: a loss that overflows, gradients unscaled twice, a learning rate "
      "that is too large; bf16 has the range of fp32";
  finding.danger = "the model does not learn in these steps";
  return finding;
}

}  // namespace

const Rule kScalerCollapse = {
    .id = "scaler_collapse",
    .level = Level::kScript,
    .signal =
        "calls of GradScaler.step(), and how often its scale was lowered, which it is for each step that it skips",
    .threshold = "a fifth of 20 steps or more",
    .source =
        "a choice: a scaler skips a few steps at the start until its scale fits, and grows only after 2,000 clean "
        "steps",
    .disproof = "the steps were skipped at the start only, and later looks show none",
    .judge = judge,
};

}  // namespace stoker::observe::doctor
