// SPDX-License-Identifier: Apache-2.0
// A switch for debugging was left on.
#include "stoker/observe/doctor/rules/all.h"
#include "stoker/observe/doctor/rules/rule_parts.h"

namespace stoker::observe::doctor {
namespace {

constexpr double kMost = 0.02;  // of the time
// Of the time of a backward pass whose gradients are checked for NaN: 22 of 36 ms (tests/doctor/cases/anomaly.py).
constexpr double kChecking = 0.5;
// On a GPU the host waits for each of these checks: a GPT's backward pass took 48 ms instead of 13 on an H200.
constexpr double kCheckingOnGpu = 0.75;

// Seconds that a launch takes longer if the host waits for its kernel, beside the kernel itself: a GPT with 835 kernels
// per step took 12 us more on an H200, a perceptron with 80 took 2 (bench/results/doctor-gpu.txt).
constexpr double kRoundTrip = 7e-6;
// Of stacks and checks in scripts. A check makes tensors: where freed memory is kept, three networks saved 0.75 to 1.05
// of it (bench/results/doctor-scripts.txt).
constexpr Reach kKept = {.low = 0.7, .high = 1.15}, kFreed = {.low = 0.95, .high = 1.65};
constexpr double kUnsure = 0.25;  // of the time that a run's forward, loss and backward take without stacks

bool waits_for_kernels(const Facts& facts) {
  const std::string_view value = facts.word("switch.environment.CUDA_LAUNCH_BLOCKING");
  return !value.empty() && value != "0" && facts.burst != nullptr;
}

// With CUDA_LAUNCH_BLOCKING host and GPU work in turns; without, beside each other.
Finding blocking_launches(const Facts& facts) {
  const Facts& burst = *facts.burst;
  const double step = burst.figure("step.seconds").value_or(0), device = burst.figure("device.seconds").value_or(0);
  const double kernels = burst.figure("kernels.per_step").value_or(0);
  Finding finding;
  finding.claim = "CUDA_LAUNCH_BLOCKING is set: the host waits for each kernel";
  finding.evidence = {fmt::format("{:.0f} kernels per step, {} of the time (trace)", kernels, percent(device / step))};
  finding.cure = "CUDA_LAUNCH_BLOCKING only while you look for a fault";
  const double saved = std::min(device, step - device) + kRoundTrip * kernels;
  finding.gain = predict(facts.periods, share_of_time(std::clamp(saved / step, 0.0, 0.9)), {.low = 0.2, .high = 1.4});
  return finding;
}

// Share of the looks at the training in which Python formatted a stack, as anomaly mode does for each operator.
double formatting(const Facts& facts) {
  double all = 0, some = 0;
  for (const Site& site : facts.sites) {
    const bool own = !site.part.starts_with("loader.");
    all += own ? static_cast<double>(site.looks) : 0;
    some += own && (site.module == "traceback" || site.module == "linecache") ? static_cast<double>(site.looks) : 0;
  }
  return all > 0 ? some / all : 0;
}

// Stoker's own: each operator stores the stack of the C++ program in the forward pass and in the loss, so the backward
// pass tells what the step takes without. As a share of the checked backward pass, forward, loss and backward without
// anomaly detection took 0.83 in a perceptron, whose forward and loss had become 15 times the backward pass; 1.22 at
// 4.6 times (CNN), and 0.97 at 6.6 times (GPT). Without any stack it would be about 1.5.
double without_stacks(const Period& each) {
  const double backward = each.part("backward"), stored = each.part("forward") + each.part("loss");
  return stored > 0 ? std::min(backward * (0.8 + 0.5 * std::sqrt(backward / stored)), stored + backward) : backward;
}

// On a CPU, if the backward pass is nothing else.
Prediction without_anomaly(const Facts& facts) {
  if (facts.word("plan.device").starts_with("cuda") || facts.word("plan.optimizer_in_backward") == "on" ||
      !(facts.word("plan.recompute").empty() || facts.word("plan.recompute") == "none")) {
    const auto computing = [](const Period& each) {
      return each.part("forward") + each.part("loss") + each.part("backward");
    };
    return predict(facts.periods, computing, {.low = 0.75, .high = 0.98});  // networks were 4 to 20 times as slow
  }
  double saved = 0, remains = 0;
  const auto stacks = [](const Period& each) {
    return each.part("forward") + each.part("loss") + each.part("backward") - without_stacks(each);
  };
  for (const Period& each : facts.periods) {
    saved += stacks(each);
    remains += without_stacks(each);
  }
  const double unsure = saved > 0 ? std::min(kUnsure * remains / saved, 1.0) : 0;
  return predict(facts.periods, stacks, {.low = 1 - unsure, .high = 1 + unsure});
}

Judgement judge_run(const Facts& facts) {
  if (facts.word("plan.anomaly") != "on") {
    return Healthy{};
  }
  Finding finding;
  finding.claim = "Anomaly detection is on: each operator stores its stack, and each gradient is checked for NaN";
  finding.evidence = {part_words(facts, "forward"), part_words(facts, "backward")};
  finding.cure = "anomaly detection only while you look for a NaN";
  finding.option = "anomaly=off";
  finding.gain = without_anomaly(facts);
  return finding;
}

Judgement judge(const Facts& facts) {
  if (facts.source == Source::kRun) {
    return judge_run(facts);
  }
  if (auto other = without_script(facts)) {
    return *other;
  }
  Finding finding;
  if (facts.word("switch.anomaly") == "true") {
    const double stacks = formatting(facts), backward = facts.share("backward").value_or(0);
    const double checking = facts.burst == nullptr ? kChecking : kCheckingOnGpu;
    finding.claim = "Anomaly detection is on: each operator stores its stack, and each gradient is checked for NaN";
    finding.evidence = {fmt::format("formatting stacks: {} of the time (script)", percent(stacks)),
                        part_words(facts, "backward")};
    finding.cure = "torch.autograd.set_detect_anomaly(True) only while you look for a NaN";
    finding.option = "torch.autograd.set_detect_anomaly(False)";
    const Reach reach = facts.burst == nullptr && keeps_freed_memory(facts) ? kKept : kFreed;
    finding.gain = predict(facts.periods, share_of_time(std::min(stacks + checking * backward, 0.95)), reach);
  } else if (waits_for_kernels(facts)) {
    finding = blocking_launches(facts);
  } else if (facts.word("switch.profiler") == "true") {
    finding.claim = "A profiler records every step";
    finding.evidence = {"torch.autograd's profiler is on (script)"};
    finding.cure = "a schedule that records a few steps: torch.profiler.schedule(wait=..., warmup=1, active=3)";
    // A burst took 1.02 to 1.07 of a step's time for a CNN and a GPT, and 1.85 where a step takes 0.1 ms
    // (bench/results/profile.txt). Scripts of three networks gained 1.09 to 1.28 (doctor-scripts.txt).
    finding.gain = predict(facts.periods, share_of_time(0.12), {.low = 0.15, .high = 1.8});
  } else {
    return Healthy{};
  }
  return finding.gain.gain() < kMost ? Judgement(Healthy{}) : Judgement(std::move(finding));
}

}  // namespace

const Rule kDebugApis = {
    .id = "debug_apis_on",
    .level = Level::kScript,
    .signal = "switches of anomaly detection and the profiler; time in which Python formats stacks",
    .threshold = "predicted gain of 2 %",
    .source = "Lightning-AI/pytorch-lightning#17359: 2.5 times as slow with anomaly detection",
    .disproof = "the step takes as long with the switch off",
    .judge = judge,
};

}  // namespace stoker::observe::doctor
