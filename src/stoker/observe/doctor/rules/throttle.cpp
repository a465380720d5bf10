// SPDX-License-Identifier: Apache-2.0
// A GPU works with a lower clock, since it is too hot or its supply is too weak.
#include <array>

#include "stoker/observe/doctor/rules/all.h"
#include "stoker/observe/doctor/rules/rule_parts.h"

namespace stoker::observe::doctor {
namespace {

constexpr double kMost = 0.1;     // of the time
constexpr double kSlower = 0.05;  // of the clock
// A power cap is not among them: large GPUs reach it in healthy trainings.
constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kReasons = {
    {{"hardware_thermal", "it is too hot"},
     {"software_thermal", "it is too hot"},
     {"power_brake", "its power supply asks for it"},
     {"hardware_slowdown", "the hardware asks for it"}}};

Judgement judge(const Facts& facts) {
  const std::string gpu = watched_gpu(facts);
  const auto clock = facts.figure(gpu + ".sm_clock_hz"), limit = facts.figure(gpu + ".sm_clock_limit_hz");
  if (!clock || !limit || *limit <= 0) {
    return Abstained{"a GPU's clock and its limit (monitor; NVML)"};
  }
  const double slower = 1 - *clock / *limit;
  for (const auto& [reason, words] : kReasons) {
    const double share = facts.figure(fmt::format("{}.throttled.{}_share", gpu, reason)).value_or(0);
    if (share < kMost || slower < kSlower) {
      continue;
    }
    Finding finding;
    finding.claim = fmt::format("{} holds its clock down {} of the time, since {}", gpu, percent(share), words);
    finding.evidence = {fmt::format("{}: {} of the time; clock {:.0f} of {:.0f} MHz (monitor)", reason, percent(share),
                                    1e-6 * *clock, 1e-6 * *limit)};
    finding.cure = "better cooling or power: air flow, dust, the fan's curve, power cables";
    // The clock is also low while the GPU has nothing to do. Kernels that wait for memory do not follow it.
    const double busy = facts.figure(gpu + ".busy_share").value_or(1);
    finding.gain = predict(facts.periods, share_of_time(std::min(busy * slower, share)), {.low = 0.3, .high = 1});
    return finding;
  }
  return Healthy{};
}

}  // namespace

const Rule kThrottle = {
    .id = "throttle",
    .level = Level::kMonitor,
    .signal = "NVML's reasons for a lower clock; the clock and its limit",
    .threshold = "10 % of the time for heat, power supply or hardware, and a clock 5 % below its limit",
    .source = "a choice; NVML's nvmlClocksEventReasons tells apart what is a fault and what is a set power cap",
    .disproof = "the step takes as long after the GPU has cooled down",
    .judge = judge,
};

}  // namespace stoker::observe::doctor
