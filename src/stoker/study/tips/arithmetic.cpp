// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "stoker/precision/policy.h"
#include "stoker/study/tips/step_way.h"
#include "stoker/study/tips/tip_rows.h"

namespace stoker::study {
namespace {

std::vector<std::string> models_with(bool BenchModelInfo::*trait) {
  std::vector<std::string> names;
  for (const BenchModelInfo& info : bench_models()) {
    if (info.listed && info.*trait) {
      names.push_back(info.name);
    }
  }
  return names;
}

Tip autocast(std::string id, std::string title, std::string with, at::ScalarType dtype, Need need) {
  return {.id = std::move(id),
          .title = std::move(title),
          .without = "fp32",
          .with = std::move(with),
          .need = need,
          .models = listed_models(),
          .make = [dtype](const TipCase& tip_case, bool on) {
            return engine_way(tip_case, {.step = {.autocast = on ? dtype : at::kFloat}});
          }};
}

// A process-wide switch, restored after every step.
Way under_policy(const TipCase& tip_case, const precision::ArithmeticPolicy& policy) {
  return engine_way(tip_case,
                    {.before = [policy] { precision::apply(policy); }, .after = [] { precision::apply({}); }});
}

}  // namespace

std::vector<std::string> listed_models() { return models_with(&BenchModelInfo::listed); }

Tip no_conv_bias() {
  return {.id = "no-conv-bias",
          .title = "no convolution bias before batch norm",
          .without = "bias",
          .with = "none",
          .models = models_with(&BenchModelInfo::batch_norm),
          .make = [](const TipCase& tip_case, bool on) { return engine_way(tip_case, {.model = {.conv_bias = !on}}); }};
}

Tip channels_last() {
  return {
      .id = "channels-last",
      .title = "channels_last layout",
      .without = "contiguous",
      .with = "channels_last",
      .models = models_with(&BenchModelInfo::convolutions),
      .make = [](const TipCase& tip_case, bool on) { return engine_way(tip_case, {.model = {.channels_last = on}}); }};
}

Tip autocast_bf16() { return autocast("autocast-bf16", "autocast to bfloat16", "bf16", at::kBFloat16, Need::kNothing); }

Tip autocast_fp16() {
  return autocast("autocast-fp16", "autocast to float16, gradients scaled", "fp16", at::kHalf, Need::kHalfUnits);
}

Tip tf32() {
  return {.id = "tf32",
          .title = "TF32 matrix products",
          .without = "float32",
          .with = "TF32",
          .need = Need::kGpu,
          .models = listed_models(),
          .make = [](const TipCase& tip_case, bool on) { return under_policy(tip_case, {.tf32 = on}); }};
}

Tip cudnn_benchmark() {
  return {.id = "cudnn-benchmark",
          .title = "cuDNN benchmark mode (search for the fastest algorithm)",
          .without = "off",
          .with = "on",
          .need = Need::kGpu,
          .models = models_with(&BenchModelInfo::convolutions),
          .make = [](const TipCase& tip_case, bool on) { return under_policy(tip_case, {.cudnn_benchmark = on}); }};
}

Tip fused_attention() {
  return {.id = "fused-attention",
          .title = "scaled_dot_product_attention",
          .without = "separate operators",
          .with = "fused",
          .models = models_with(&BenchModelInfo::attention),
          .make = [](const TipCase& tip_case, bool on) {
            return engine_way(tip_case,
                              {.model = {.attention = on ? ops::AttentionKind::kFused : ops::AttentionKind::kWritten}});
          }};
}

}  // namespace stoker::study
