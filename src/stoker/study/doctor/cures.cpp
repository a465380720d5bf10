// SPDX-License-Identifier: Apache-2.0
#include "stoker/study/doctor/cures.h"

#include <algorithm>
#include <array>

#include "stoker/observe/doctor/inventory.h"

namespace stoker::study {

using namespace observe::doctor;

namespace {

// The names in front of "=" or "(". The house test of scripts tries each of them.
constexpr std::array<std::string_view, 15> kWays = {"num_workers",
                                                    "persistent_workers",
                                                    "pin_memory",
                                                    "worker_init_fn",
                                                    "fused",
                                                    "set_to_none",
                                                    "dynamic",
                                                    "gc.freeze",
                                                    "torch.set_num_threads",
                                                    "torch.autograd.set_detect_anomaly",
                                                    "memory_format",
                                                    "torch.set_float32_matmul_precision",
                                                    "torch.backends.cudnn.benchmark",
                                                    "MALLOC_TRIM_THRESHOLD_",
                                                    "MALLOC_MMAP_MAX_"};
// Arguments of a DataLoader.
constexpr std::array<std::string_view, 4> kOfLoader = {"num_workers", "persistent_workers", "pin_memory",
                                                       "worker_init_fn"};

// Other sums in operators, and workers' own seeds.
constexpr std::array<std::string_view, 3> kChangeResults = {"num_workers", "torch.set_num_threads", "intra_op"};

std::string_view name_of(std::string_view option) { return option.substr(0, option.find_first_of("=(")); }

// "threads=auto intra_op=auto": both names.
std::vector<std::string_view> names_of(std::string_view option) {
  std::vector<std::string_view> names;
  while (!option.empty()) {
    const std::string_view word = option.substr(0, option.find(' '));
    names.push_back(name_of(word));
    option.remove_prefix(std::min(word.size() + 1, option.size()));
  }
  return names;
}

bool share_a_name(std::string_view some, std::string_view others) {
  const std::vector<std::string_view> names = names_of(others);
  return std::ranges::any_of(names_of(some), [&](auto each) { return std::ranges::count(names, each) > 0; });
}

// Of an option that belongs to no call, the whole main script: "train.py:0".
std::string place_of(std::string_view option, const Facts& facts) {
  const std::string_view name = name_of(option);
  return std::string(facts.word(std::ranges::count(kOfLoader, name) > 0 ? "loader.where"
                                : name == "fused"                       ? "switch.optimizer.where"
                                : name == "set_to_none"                 ? "zero_grad.where"
                                                                        : "switch.main"));
}

}  // namespace

bool can_be_tried(std::string_view option) { return std::ranges::count(kWays, name_of(option)) > 0; }

namespace {

// Of findings that a test lets pass.
template <typename Test>
std::vector<Cure> cures_of(const Examined& examined, const Test& passes) {
  const auto& [facts, diagnosis] = examined;
  std::vector<Cure> result;
  const std::vector<Switch> switches = inventory(facts);
  for (const Found& each : diagnosis.found) {
    const std::string& option = each.finding.option;
    if (passes(each) && !option.empty()) {
      const bool changes = std::ranges::any_of(
          switches, [&](const Switch& one) { return one.changes_results && share_a_name(one.option, option); });
      const bool always =
          std::ranges::any_of(names_of(option), [](auto name) { return std::ranges::count(kChangeResults, name) > 0; });
      result.push_back({.rule = std::string(each.rule->id),
                        .option = option,
                        .where = place_of(option, facts),
                        .prediction = each.finding.gain,
                        .changes_results = changes || always});
    }
  }
  return result;
}

}  // namespace

std::vector<Cure> proposed(const Examined& examined) {
  return cures_of(examined, [](const Found& each) { return each.worth_saying(); });
}

std::vector<Cure> cures(const Examined& examined) {
  // Also what likely gains, but is not certain to.
  std::vector<Cure> result = cures_of(
      examined, [](const Found& each) { return each.worth_saying() || each.finding.gain.gain() >= kWorthSaying; });
  const bool script = examined.facts.source != Source::kRun;  // a run takes each of its options
  const auto impossible = [&](const std::string& option) {
    return option.empty() || (script && !can_be_tried(option));
  };
  std::erase_if(result, [&](const Cure& each) { return impossible(each.option); });
  // A switch whose rule could tell is on the list already, or its rule found nothing.
  const auto told = [&](std::string_view rule) {
    return !rule.empty() && std::ranges::none_of(examined.diagnosis.undecided,
                                                 [&](const Undecided& each) { return each.rule->id == rule; });
  };
  for (const Switch& each : inventory(examined.facts)) {
    const bool listed =
        std::ranges::any_of(result, [&](const Cure& cure) { return share_a_name(cure.option, each.option); });
    if (!listed && !told(each.rule) && !impossible(each.option)) {
      result.push_back({.rule = {},
                        .option = each.option,
                        .where = place_of(each.option, examined.facts),
                        .changes_results = each.changes_results});
    }
  }
  return result;
}

bool pays(const Ratio& gain) { return gain.median >= 1 + kWorthSaying && gain.low > 1; }

}  // namespace stoker::study
