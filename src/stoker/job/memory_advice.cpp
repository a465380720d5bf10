// SPDX-License-Identifier: Apache-2.0
#include "stoker/job/memory_advice.h"

#include <algorithm>
#include <vector>

#include "stoker/base/bytes_text.h"
#include "stoker/device/backend.h"
#include "stoker/job/setup.h"

namespace stoker::job {
namespace {

constexpr std::size_t kWays = 3;

// Ways that apply to this plan, by what they cost: nothing but memory, time, then quality. activations: bytes at the
// peak, batches included; -1: unknown.
std::vector<std::string> ways_to_fit(const Setup& setup, const HeldBytes& held, std::int64_t activations,
                                     bool searches_passes) {
  const train::Plan& plan = setup.plan;
  const std::int64_t smallest = setup.couples_samples ? 2 : 1;  // samples of a pass
  std::vector<std::string> ways;
  if (plan.memory_limit > 0) {
    ways.push_back(fmt::format("memory_limit= above {}", bytes_text(plan.memory_limit)));
  }
  if (activations >= 0 && activations < held.gradients && plan.batch > smallest) {  // recomputing cannot save that much
    const bool freed = plan.device == "cpu" && plan.clip == 0 && plan.precision != "fp16" && setup.ranks->size() == 1;
    ways.push_back(freed ? fmt::format("batch={} optimizer_in_backward=on (gradients hold much less than {})", smallest,
                                       bytes_text(held.gradients))
                         : fmt::format("batch={} (one pass, so forward runs without the {} of gradients)", smallest,
                                       bytes_text(held.gradients)));
  } else if (setup.model->segments() > 1 && plan.recompute == "none" && !searches_passes) {
    ways.emplace_back("recompute=auto (keeps fewer activations where they do not fit; up to a third more time)");
  } else if (setup.model->segments() > 1 && plan.recompute != "all") {
    ways.emplace_back("recompute=all (keeps the fewest activations; up to a third more time)");
  }
  if (setup.ranks->size() > 1 && plan.shard == "none" && plan.pipeline == 1) {
    const std::int64_t others = held.optimizer - held.optimizer / setup.ranks->size();
    ways.push_back(fmt::format("shard=optimizer (saves {} on each rank)", bytes_text(others)));
  }
  if (plan.precision == "fp32" && plan.device != "cpu") {
    ways.emplace_back("precision=bf16 (activations take half)");
  }
  if (held.averages > 0) {
    ways.push_back(fmt::format("ema=0 (saves {})", bytes_text(held.averages)));
  }
  if (plan.optimizer != "sgd") {
    ways.push_back(fmt::format("optimizer=sgd (saves {})", bytes_text(held.optimizer / 2)));
  }
  if (plan.own.contains("image_size")) {
    ways.emplace_back("a smaller image_size=");
  }
  if (plan.own.contains("context")) {
    ways.emplace_back("a smaller context=");
  }
  ways.emplace_back("a smaller model=");
  ways.resize(std::min(ways.size(), kWays));
  return ways;
}

}  // namespace

HeldBytes held_by_run(const Setup& setup) {
  const train::Plan& plan = setup.plan;
  const int moments = plan.optimizer == "sgd" ? (plan.momentum > 0 ? 1 : 0) : 2;
  HeldBytes held;
  for (const core::Parameter& each : setup.model->parameters()) {
    const std::int64_t bytes = static_cast<std::int64_t>(each.tensor.nbytes());
    const bool half = each.tensor.element_size() < 4;
    const std::int64_t whole = half ? 4 * each.tensor.numel() : bytes;  // float32 gradients, moments, masters, averages
    held.weights += bytes;
    held.averages += plan.ema > 0 ? whole : 0;
    if (each.tensor.requires_grad()) {
      held.add_gradient(whole, plan.optimizer_in_backward);
      held.optimizer += (moments + (half ? 1 : 0)) * whole;
    }
  }
  return held;
}

std::string memory_advice(const Setup& setup, const HeldBytes& held, bool searches_passes) {
  const device::MemoryFigures now = device::backend_for(setup.device).memory(setup.device);
  std::string text = fmt::format("weights hold {}, gradients {}, {} {}", bytes_text(held.weights),
                                 bytes_text(held.gradients), setup.plan.optimizer, bytes_text(held.optimizer));
  if (held.averages > 0) {
    text += fmt::format(", averages {}", bytes_text(held.averages));
  }
  std::int64_t activations = -1;
  if (now.peak >= 0) {
    activations = std::max<std::int64_t>(0, now.peak - held.weights - held.gradients - held.optimizer - held.averages);
    text += fmt::format(", activations and batches up to {}", bytes_text(activations));
  }
  if (now.free >= 0) {
    text += fmt::format("; {} are free between steps", bytes_text(now.free));
  }
  return fmt::format("{}; ways to fit: {}", text,
                     fmt::join(ways_to_fit(setup, held, activations, searches_passes), ", "));
}

}  // namespace stoker::job
