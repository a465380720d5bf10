// SPDX-License-Identifier: Apache-2.0
// Matrix products and convolutions run without tensor cores, or at half of what these can do.
#include "stoker/observe/doctor/rules/all.h"
#include "stoker/observe/doctor/rules/rule_parts.h"

namespace stoker::observe::doctor {
namespace {

constexpr double kMostPlain = 0.1;  // of the time of kernels
constexpr double kMostTf32 = 0.2;
// A GPT of 12 layers and a ResNet on an H200 (bench/results/doctor-gpu.txt): products with TF32 took a fifth of the
// time without. Autocast to bf16 saved 0.5 and 0.25 of all kernels' time where TF32 products were 0.45 and 0.4 of it,
// since the rest moves half as many bytes; the host took 0.3 longer.
constexpr double kByTf32 = 0.8, kByAutocast = 0.6, kHostWithAutocast = -0.3;
// Compute capabilities: tensor cores for float16 from 7.0 on, for TF32 and bfloat16 from 8.0 on.
constexpr int kFloat16 = 7, kTf32 = 8;

Judgement judge(const Facts& facts) {
  if (auto other = without_device(facts, "kernels.plain_product_share")) {
    return *other;
  }
  const double plain = *facts.figure("kernels.plain_product_share");
  const double tf32 = facts.figure("kernels.tf32_product_share").value_or(0);
  const double capability = facts.figure("device.compute_major").value_or(kTf32);
  if (capability < kFloat16) {
    return Healthy{};
  }
  Finding finding;
  if (plain >= kMostPlain) {
    finding.claim = fmt::format(
        "{} of the device's computing is matrix products and convolutions in float32 without "
        "tensor cores",
        percent(plain));
    const bool convolutions = 2 * facts.figure("kernels.plain_convolution_share").value_or(0) > plain;
    const char* const where = facts.figure("device.compute_major") ? "" : ", on Ampere GPUs and later";
    finding.cure =
        capability < kTf32 ? "autocast to float16 with a GradScaler (results differ a little)"
        : convolutions
            ? fmt::format("torch.backends.cudnn.allow_tf32 = True (results differ a little{}), or autocast", where)
            : fmt::format("TF32 (results differ a little{}), or autocast to bfloat16", where);
    finding.option = capability < kTf32 || convolutions ? "" : "torch.set_float32_matmul_precision('high')";
    finding.gain = predict_less_computing(facts, kByTf32 * plain, {.low = 0.7, .high = 1.3});
  } else if (tf32 >= kMostTf32) {
    finding.claim = fmt::format(
        "{} of the device's computing is matrix products and convolutions in TF32, and the "
        "rest moves float32",
        percent(tf32));
    finding.cure = "autocast to bfloat16 (results differ a little), which halves both";
    finding.option = "torch.autocast('cuda', torch.bfloat16)";
    finding.gain = predict_less_computing(facts, kByAutocast * tf32, {.low = 0.5, .high = 1.1}, kHostWithAutocast);
  } else {
    return Healthy{};
  }
  finding.evidence = {fmt::format("float32 products without tensor cores: {}, with TF32: {} of the time of kernels "
                                  "(trace)",
                                  percent(plain), percent(tf32)),
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
