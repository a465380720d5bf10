// SPDX-License-Identifier: Apache-2.0
// Averages of the weights are updated one tensor at a time.
#include "stoker/observe/doctor/rules/all.h"
#include "stoker/observe/doctor/rules/rule_parts.h"

namespace stoker::observe::doctor {
namespace {

constexpr double kMost = 0.04;  // of the looks at the training
// As people write it: average.mul_(decay).add_(parameter, alpha=1 - decay), average.lerp_(parameter, 1 - decay).
bool updates_average(std::string_view text) {
  const auto has = [&](std::string_view part) { return text.find(part) != std::string_view::npos; };
  return !has("grad") && (has(".lerp_(") || (has(".mul_(") && has(".add_(") && has("alpha")));
}

Judgement judge(const Facts& facts) {
  if (auto other = without_script(facts)) {
    return *other;
  }
  if (facts.burst == nullptr) {
    return Healthy{};  // on a CPU the same tensors are read and written either way
  }
  std::int64_t all = 0, some = 0;
  const Site* most = nullptr;
  for (const Site& site : facts.sites) {
    const bool own = !site.part.starts_with("loader.");
    const bool averages = own && site.part == "other" && updates_average(site.text);
    all += own ? site.looks : 0;
    some += averages ? site.looks : 0;
    most = averages && (most == nullptr || site.looks > most->looks) ? &site : most;
  }
  const double share = all > 0 ? static_cast<double>(some) / static_cast<double>(all) : 0;
  if (most == nullptr || share < kMost) {
    return Healthy{};
  }
  Finding finding;
  finding.claim = fmt::format("A loop updates averages tensor by tensor, {} of the time", percent(share));
  finding.evidence = {
      fmt::format("{} ({}): {} of the looks at the training (script)", most->where, most->text, percent(share))};
  finding.cure =
      "torch._foreach_lerp_(averages, parameters, 1 - decay), or torch.optim.swa_utils.AveragedModel with "
      "get_ema_multi_avg_fn()";
  finding.in_host = true;
  finding.gain = predict(facts.periods, share_of_time(std::min(share, 0.95)), {.low = 0.6, .high = 1.2});
  return finding;
}

}  // namespace

const Rule kEmaLoop = {
    .id = "ema_loop",
    .level = Level::kScript,
    .signal = "looks at a line outside the optimizer that calls .lerp_(), or .mul_() and .add_(alpha=); a GPU",
    .threshold = "4 % of the looks",
    .source = "twice the smallest gain that is worth a change",
    .disproof = "the line does something else with few tensors",
    .judge = judge,
};

}  // namespace stoker::observe::doctor
