// SPDX-License-Identifier: Apache-2.0
// Attention is computed by separate operators, each of which writes and reads the scores of all pairs of tokens.
#include "stoker/observe/doctor/rules/all.h"
#include "stoker/observe/doctor/rules/rule_parts.h"

namespace stoker::observe::doctor {
namespace {

constexpr double kMost = 0.1;  // of the time of kernels

Judgement judge(const Facts& facts) {
  if (auto other = without_device(facts, "operators.attention_share")) {
    return *other;
  }
  const double share = *facts.figure("operators.attention_share");
  if (share < kMost) {
    return Healthy{};
  }
  Finding finding;
  finding.claim = fmt::format("Attention in separate operators takes {} of the device's computing", percent(share));
  finding.evidence = {fmt::format("bmm, softmax and masked_fill: {} of the time of kernels (trace)", percent(share))};
  finding.cure = facts.word("operators.attention") == "math"
                     ? "bfloat16 or float16, and a mask and a head size that fused kernels take: "
                       "scaled_dot_product_attention fell back to separate operators"
                     : "torch.nn.functional.scaled_dot_product_attention (results differ a little)";
  // A GPT with 512 tokens on an H200: 28 % of the kernels' time before, and 47 % of it saved, since casts and scaling
  // of the scores went, too. These operators were 10 % of the kernels, and 27 % fewer remained
  // (bench/results/doctor-gpu.txt).
  const double fewer = facts.figure("operators.attention_count_share").value_or(0);
  finding.gain = predict_less_computing(facts, share, {.low = 0.7, .high = 2.5}, fewer);
  return finding;
}

}  // namespace

const Rule kAttentionUnfused = {
    .id = "attention_unfused",
    .level = Level::kTrace,
    .signal = "device time of bmm, softmax and masked_fill, where no operator of fused attention runs",
    .threshold = "10 % of the time of kernels",
    .source = "a choice: with few tokens the scores are small",
    .disproof = "scaled_dot_product_attention takes as long: then it chose separate operators, too",
    .judge = judge,
};

}  // namespace stoker::observe::doctor
