// SPDX-License-Identifier: Apache-2.0
// Gradients in fp16 without a scaler: small ones become zero.
#include "stoker/observe/doctor/rules/all.h"
#include "stoker/observe/doctor/rules/rule_parts.h"

namespace stoker::observe::doctor {
namespace {

Judgement judge(const Facts& facts) {
  if (auto other = without_script(facts)) {
    return *other;
  }
  if (facts.word("autocast.torch.float16").empty() || facts.figure("scaler.calls").value_or(0) > 0) {
    return Healthy{};
  }
  constexpr double kFewSteps = 20;  // then a scaler would have been seen
  if (static_cast<double>(facts.steps()) < kFewSteps) {
    return Abstained{"20 steps"};
  }
  Finding finding;
  finding.claim = "The training computes in fp16 without a gradient scaler";
  finding.evidence = {fmt::format("autocast to float16 on {}, no call of GradScaler.step() (script)",
                                  facts.word("autocast.torch.float16"))};
  finding.cure = "torch.amp.GradScaler, or bf16, which needs none: torch.autocast(..., dtype=torch.bfloat16)";
  finding.danger = "small gradients become zero";
  return finding;
}

}  // namespace

const Rule kFp16WithoutScaler = {
    .id = "fp16_without_scaler",
    .level = Level::kScript,
    .signal = "autocast to float16 while training; calls of GradScaler.step()",
    .threshold = "autocast to float16, and no call in 20 steps",
    .source = "docs.pytorch.org/docs/stable/amp.html: gradient scaling",
    .disproof = "gradients are scaled by other code, such as DeepSpeed",
    .judge = judge,
};

}  // namespace stoker::observe::doctor
