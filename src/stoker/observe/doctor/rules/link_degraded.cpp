// SPDX-License-Identifier: Apache-2.0
// A GPU's link to the host is slower than it could be, and the training moves much over it.
#include <array>

#include "stoker/observe/doctor/rules/all.h"
#include "stoker/observe/doctor/rules/rule_parts.h"

namespace stoker::observe::doctor {
namespace {

constexpr double kMost = 0.75;  // of what the link could carry: a mean of windows in which it had just woken up is more
// Bytes per second and lane by generation (PCI-SIG, 1.0 to 6.0, after encoding).
constexpr std::array<double, 7> kLane = {0, 0.25e9, 0.5e9, 0.985e9, 1.969e9, 3.938e9, 7.563e9};

double capacity(double generation, double width) {
  const auto below = static_cast<std::size_t>(std::clamp(generation, 0.0, 6.0));
  const std::size_t above = std::min(below + 1, kLane.size() - 1);
  const double part = std::clamp(generation, 0.0, 6.0) - static_cast<double>(below);
  return std::clamp(width, 0.0, 32.0) * (kLane[below] + part * (kLane[above] - kLane[below]));
}

Judgement judge(const Facts& facts) {
  const std::vector<std::string> gpus = gpus_with(facts, ".pcie_generation");
  if (gpus.empty()) {
    return Abstained{"a GPU's link under load (monitor; NVML)"};
  }
  for (const std::string& gpu : gpus) {
    const auto value = [&](const char* name) { return facts.figure(gpu + name).value_or(0); };
    const double now = capacity(value(".pcie_generation"), value(".pcie_width"));
    const double most = capacity(value(".pcie_generation_max"), value(".pcie_width_max"));
    if (now <= 0 || most <= 0 || now > kMost * most) {
      continue;
    }
    const double traffic = std::max(value(".pcie_sent_bytes_per_second"), value(".pcie_received_bytes_per_second"));
    const double busy = std::min(traffic / now, 1.0);
    Finding finding;
    finding.claim = fmt::format("The PCIe link of {} carries {} of what it could, and is in use {} of the time", gpu,
                                percent(now / most), percent(busy));
    finding.evidence = {fmt::format("generation {:.1f} of {:.0f}, {:.0f} of {:.0f} lanes, {:.3g} GB/s (monitor)",
                                    value(".pcie_generation"), value(".pcie_generation_max"), value(".pcie_width"),
                                    value(".pcie_width_max"), 1e-9 * traffic)};
    finding.cure = "another slot or riser cable, and the link's settings in the firmware";
    finding.gain = predict(facts.periods, share_of_time(0.95 * busy * (1 - now / most)), {.low = 0.1, .high = 1});
    return finding;
  }
  return Healthy{};
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
