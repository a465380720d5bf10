// SPDX-License-Identifier: Apache-2.0
// The device is faster than the host can launch its kernels.
#include "stoker/observe/doctor/rules/all.h"
#include "stoker/observe/doctor/rules/rule_parts.h"

namespace stoker::observe::doctor {
namespace {

constexpr double kMost = 0.2;           // of the time
constexpr double kShortKernel = 50e-6;  // seconds
constexpr double kOften = 0.25;         // gaps per kernel: fewer are something else, as the first load of kernels
constexpr Reach kReach = {.low = 0.2,
                          .high = 0.9};  // fangwei123456/spikingjelly#740: 77 to 15 ms at batch 8, 184 to 182 at 96

Judgement judge(const Facts& facts) {
  if (facts.source != Source::kTrace) {
    return Abstained{"a recorded trace"};
  }
  const double share = facts.share("launching").value_or(0) + facts.share("latency").value_or(0);
  const auto kernels = facts.figure("kernels.median_seconds");
  if (!kernels) {
    return Abstained{"kernels of a device"};
  }
  const double gaps = facts.figure("idle.launching.times").value_or(0) + facts.figure("idle.latency.times").value_or(0);
  const bool often = gaps >= kOften * facts.figure("kernels.per_step").value_or(0);
  if (share < kMost || *kernels > kShortKernel || !often) {
    return Healthy{};
  }
  Finding finding;
  finding.claim = fmt::format(
      "The device waits {} of the time for the host to launch kernels: half of them take at most "
      "{:.1f} us",
      percent(share), 1e6 * *kernels);
  finding.evidence = {part_words(facts, "launching")};
  finding.evidence.push_back(
      fmt::format("{:.0f} kernels per step (trace)", facts.figure("kernels.per_step").value_or(0)));
  const double rows = facts.figure("loader.batch").value_or(0), fitting = fitting_rows(facts);
  if (rows > 0 && fitting > 0) {
    finding.evidence.push_back(
        fmt::format("about {:.0f} rows would fill the GPU's memory; a batch has {:.0f} (script)", fitting, rows));
  }
  finding.cure =
      "a larger batch, CUDA graphs or torch.compile, fused optimizers; more loader workers or a faster GPU do not help";
  finding.broad = true;
  finding.gain = predict(
      facts.periods, [](const Period& each) { return each.part("launching") + each.part("latency"); }, kReach);
  return finding;
}

}  // namespace

const Rule kLaunchBound = {
    .id = "launch_bound",
    .level = Level::kTrace,
    .signal = "idle time of the device while the host called operators or launched; duration of kernels",
    .threshold = "20 % of the time, half of the kernels take at most 50 us, and a gap for every fourth kernel",
    .source =
        "facebookresearch/fairchem#2195: kernels of 8.6 us, 45 % idle; the limit of 50 us is a choice above it. Gaps: "
        "1.6 to 1.7 per kernel in recorded programs whose launches are the limit, 0.05 where libraries are loaded",
    .disproof = "a larger batch takes proportionally longer: then the device is the limit",
    .judge = judge,
};

}  // namespace stoker::observe::doctor
