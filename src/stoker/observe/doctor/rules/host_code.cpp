// SPDX-License-Identifier: Apache-2.0
// The step waits for code of other libraries, or for NumPy, on the host.
#include <map>

#include "stoker/observe/doctor/rules/all.h"
#include "stoker/observe/doctor/rules/rule_parts.h"

namespace stoker::observe::doctor {
namespace {

constexpr double kMost = 0.1;  // of the time

bool is_training(const Site& site) {
  return site.part == "other" || site.part == "backward" || site.part == "optimizer";
}

// Code that is no part of torch: a library, or a line that says NumPy.
std::string library_of(const Site& site) {
  const std::string name = site.module.substr(0, site.module.find('.'));
  if (name.empty()) {
    const bool numpy = site.text.find("np.") != std::string::npos || site.text.find("numpy") != std::string::npos;
    return numpy ? "numpy" : "";
  }
  static constexpr std::string_view kKnown[] = {"torch", "torchvision", "contextlib", "functools", "threading", "typing"};
  return std::ranges::find(kKnown, name) != std::end(kKnown) || name.starts_with("_") ? "" : name;
}

Judgement judge(const Facts& facts) {
  if (auto other = without_script(facts)) {
    return *other;
  }
  std::map<std::string, std::int64_t> lines;  // by library and place
  std::int64_t all = 0;
  for (const Site& site : facts.sites) {
    if (site.part.starts_with("loader.") && facts.figure("loader.workers").value_or(0) > 0) {
      continue;  // of another process
    }
    all += site.looks;
    const std::string library = is_training(site) ? library_of(site) : "";
    if (!library.empty() && !site.where.empty()) {
      lines[fmt::format("{} at {} ({})", library, site.where, site.text)] += site.looks;
    }
  }
  const auto most = std::ranges::max_element(lines, {}, [](const auto& each) { return each.second; });
  const double share = most == lines.end() ? 0 : static_cast<double>(most->second) / static_cast<double>(all);
  if (share < kMost) {
    return Healthy{};
  }
  Finding finding;
  finding.claim = fmt::format("The step spends {} of the time outside torch: {}", percent(share), most->first);
  finding.evidence = {fmt::format("{} of {} looks at the training (script)", most->second, all)};
  finding.cure = "torch's own operators, less often, or in a worker of the loader";
  finding.gain = predict(facts.periods, share_of_time(std::min(share, 0.95)), {.low = 0.6, .high = 1.05});
  return finding;
}

}  // namespace

const Rule kHostCode = {
    .id = "host_code",
    .level = Level::kScript,
    .signal = "lines that the training thread runs, and the library that they call",
    .threshold = "10 % of the looks at one line",
    .source = "a choice: less is not worth a rewrite",
    .disproof = "the line computes what the step needs, and torch takes as long",
    .judge = judge,
};

}  // namespace stoker::observe::doctor
