// SPDX-License-Identifier: Apache-2.0
// A GPU's link to the host is slower than it could be, and the training moves much over it.
#include <array>
#include <cmath>

#include "stoker/observe/doctor/rules/all.h"
#include "stoker/observe/doctor/rules/rule_parts.h"

namespace stoker::observe::doctor {
namespace {

constexpr double kMost = 0.75;  // of what the link could carry: windows in which it was waking up lower the mean
// Bytes per second and lane by generation (PCI-SIG, 1.0 to 6.0, after encoding).
constexpr std::array<double, 7> kLane = {0, 0.25e9, 0.5e9, 0.985e9, 1.969e9, 3.938e9, 7.563e9};

// The generation is a mean over windows.
double capacity(double generation, double width) {
  const double known = std::clamp(generation, 0.0, 6.0);
  const auto below = static_cast<std::size_t>(known);
  const std::size_t above = std::min(below + 1, kLane.size() - 1);
  return std::clamp(width, 0.0, 32.0) * std::lerp(kLane[below], kLane[above], known - static_cast<double>(below));
}

Judgement judge(const Facts& facts) {
  const std::string gpu = watched_gpu(facts);
  const auto of = [&](const char* name) { return facts.figure(gpu + name); };
  const auto generation = of(".pcie_generation"), width = of(".pcie_width");
  const auto best = of(".pcie_generation_max"), widest = of(".pcie_width_max");
  const auto sent = of(".pcie_sent_bytes_per_second"), received = of(".pcie_received_bytes_per_second");
  if (!generation || !width || !best || !widest || !sent || !received) {
    return Abstained{"a GPU's link under load and the bytes over it (monitor; NVML)"};
  }
  const double now = capacity(*generation, *width), most = capacity(*best, *widest);
  if (now <= 0 || now > kMost * most) {
    return Healthy{};
  }
  const double traffic = std::max(*sent, *received), busy = std::min(traffic / now, 1.0);
  Finding finding;
  finding.claim = fmt::format("The PCIe link of {} carries {} of what it could, and is in use {} of the time", gpu,
                              percent(now / most), percent(busy));
  finding.evidence = {fmt::format("generation {:.1f} of {:.0f}, {:.0f} of {:.0f} lanes, {:.3g} GB/s (monitor)",
                                  *generation, *best, *width, *widest, 1e-9 * traffic)};
  finding.cure = "another slot or riser cable, and the link's settings in the firmware";
  finding.gain = predict(facts.periods, share_of_time(0.95 * busy * (1 - now / most)), {.low = 0.1, .high = 1});
  return finding;
}

}  // namespace

const Rule kLinkDegraded = {
    .id = "link_degraded",
    .level = Level::kMonitor,
    .signal = "the PCIe link's generation and lanes while kernels run, beside their maximum; bytes over the link",
    .threshold = "three quarters of what the link could carry",
    .source = "local-inference-lab/rtx6kpro#88: a link at an eighth of its rate, no error, 100 % busy",
    .disproof = "copies run beside computing (stoker profile): then the link is not what a step waits for",
    .judge = judge,
};

}  // namespace stoker::observe::doctor
