// SPDX-License-Identifier: Apache-2.0
// Matrix products and convolutions run without tensor cores, or at half of what these can do.
#include "stoker/observe/doctor/rules/all.h"
#include "stoker/observe/doctor/rules/rule_parts.h"

namespace stoker::observe::doctor {
namespace {

constexpr double kMostPlain = 0.1;  // of the time of kernels
constexpr double kMostTf32 = 0.2;
// A GPT of 12 layers and a ResNet on an H200 (bench/results/doctor-gpu.txt): products with TF32 took a fifth of the time
// without; with autocast to bf16 all kernels took 0.5 and 0.75 of the time with TF32, and the host 1.3 times as long.
constexpr double kByTf32 = 0.8, kByAutocast = 0.45, kHostWithAutocast = 1.3;

Judgement judge(const Facts& facts) {
  if (facts.source != Source::kTrace) {
    return Abstained{"a recorded trace"};
  }
  const auto plain = facts.figure("kernels.plain_product_share"), tf32 = facts.figure("kernels.tf32_product_share");
  if (!plain || !tf32) {
    return Abstained{"kernels of a device"};
  }
  Finding finding;
  if (*plain >= kMostPlain) {
    finding.claim = fmt::format("{} of the device's computing is matrix products and convolutions in float32 without "
                                "tensor cores",
                                percent(*plain));
    finding.cure = "TF32 (results differ a little), or autocast to bfloat16";
    finding.option = "torch.set_float32_matmul_precision('high')";
    finding.gain = predict(facts.periods, less_computing(facts, kByTf32 * *plain), {.low = 0.7, .high = 1.3});
  } else if (*tf32 >= kMostTf32) {
    finding.claim = fmt::format("{} of the device's computing is matrix products and convolutions in TF32, and the "
                                "rest moves float32",
                                percent(*tf32));
    finding.cure = "autocast to bfloat16 (results differ a little), which halves both";
    finding.option = "torch.autocast('cuda', torch.bfloat16)";
    finding.gain =
        predict(facts.periods, less_computing(facts, kByAutocast, kHostWithAutocast), {.low = 0.5, .high = 1.1});
  } else {
    return Healthy{};
  }
  finding.evidence = {fmt::format("float32 products without tensor cores: {}, with TF32: {} of the time of kernels "
                                  "(trace)",
                                  percent(*plain), percent(*tf32)),
                      part_words(facts, "compute")};
  return finding;
}

}  // namespace

const Rule kNoTensorCore = {
    .id = "no_tensor_core",
    .level = Level::kTrace,
    .signal = "names of kernels: sgemm, ffma and simt are float32 without tensor cores, tf32 is with",
    .threshold = "10 % of the time of kernels without tensor cores, or 20 % in TF32",
    .source = "an H200: 5 times as long without; less than a tenth is not worth other rounding",
    .disproof = "the host is the limit: then the device only waits longer",
    .judge = judge,
};

}  // namespace stoker::observe::doctor
