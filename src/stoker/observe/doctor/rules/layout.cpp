// SPDX-License-Identifier: Apache-2.0
// Convolutions change the layout of their inputs, again and again.
#include "stoker/observe/doctor/rules/all.h"
#include "stoker/observe/doctor/rules/rule_parts.h"

namespace stoker::observe::doctor {
namespace {

constexpr double kMost = 0.05;  // of the time of kernels

Judgement judge(const Facts& facts) {
  if (auto other = without_device(facts, "kernels.layout_share")) {
    return *other;
  }
  const double share = *facts.figure("kernels.layout_share");
  if (share < kMost) {
    return Healthy{};
  }
  const bool plain = facts.figure("kernels.plain_product_share").value_or(0) > share;
  Finding finding;
  finding.claim = fmt::format("{} of the device's computing changes tensors between NCHW and NHWC", percent(share));
  finding.evidence = {
      fmt::format("nchwToNhwc and nhwcToNchw kernels: {} of the time of kernels (trace)", percent(share))};
  if (plain) {  // its float32 convolutions without tensor cores want NCHW
    finding.cure = "the contiguous layout, or TF32 or bfloat16 with channels_last";
  } else {
    finding.cure = "model.to(memory_format=torch.channels_last), and the same for the images";
    finding.option = "memory_format=torch.channels_last";
  }
  // A ResNet in bfloat16 on an H200: the changes took 14 % of the kernels' time, and without them it was 37 % shorter,
  // since batch norm is faster, too. Of the kernels 24 % were changes, and the host's time became 31 % shorter
  // (bench/results/doctor-gpu.txt).
  const double fewer = facts.figure("kernels.layout_count_share").value_or(0);
  finding.gain = predict_less_computing(facts, share, {.low = 0.8, .high = 2}, fewer);
  return finding;
}

}  // namespace

const Rule kLayout = {
    .id = "layout",
    .level = Level::kTrace,
    .signal = "names of kernels that change between NCHW and NHWC",
    .threshold = "5 % of the time of kernels",
    .source = "a ResNet with channels_last: 0 %, contiguous: 14 % on an H200",
    .disproof = "channels_last takes as long: some networks have operators without it (--try measures)",
    .judge = judge,
};

}  // namespace stoker::observe::doctor
