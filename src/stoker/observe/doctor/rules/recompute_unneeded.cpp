// SPDX-License-Identifier: Apache-2.0
// Activation checkpointing computes segments again, although memory would hold all of their values.
#include <cstdlib>

#include "stoker/observe/doctor/rules/all.h"
#include "stoker/observe/doctor/rules/rule_parts.h"

namespace stoker::observe::doctor {
namespace {

// A pass of BERT-base had a 6.7th of its peak with recompute=all, 71 of 472 MB (bench/results/recompute.txt). Deeper
// networks save more, but weights and the program itself count, too.
constexpr double kMostSaved = 10;
// All segments again take about as long as forward: 0.30 to 0.37 of a step (the same).
constexpr Reach kAll = {.low = 0.75, .high = 1.25};
// Of those that are named nobody knows the length: a hundredth of all, or most of it.
constexpr Reach kSome = {.low = 0, .high = 0.9};

// Which part of all segments is computed again; none: of names nobody knows.
std::optional<double> part_of(std::string_view recompute) {
  constexpr std::string_view kEvery = "every:";
  if (recompute.starts_with(kEvery)) {
    return 1 / std::max(std::atof(std::string(recompute.substr(kEvery.size())).c_str()), 1.0);
  }
  return recompute == "all" ? std::optional(1.0) : std::nullopt;
}

// Bytes that are in use where tensors are, and all that could be.
struct Memory {
  double used = 0, most = 0;
};

std::optional<Memory> memory_of(const Facts& facts) {
  if (facts.word("plan.device").starts_with("cuda")) {
    const std::string gpu = watched_gpu(facts);
    const auto used = facts.figure(gpu + ".memory_used_bytes"), most = facts.figure(gpu + ".memory_bytes");
    return used && most ? std::optional(Memory{*used, *most}) : std::nullopt;
  }
  const auto used = facts.figure("process.resident_bytes"), left = facts.figure("machine.available_bytes");
  if (!used || !left) {
    return std::nullopt;
  }
  const double limit = facts.figure("cgroup.memory_limit_bytes").value_or(*used + *left);
  return Memory{*used, std::min(*used + *left, limit)};
}

Judgement judge(const Facts& facts) {
  if (facts.source != Source::kRun) {
    return Abstained{"the plan of a run"};
  }
  const std::string_view set = facts.word("plan.recompute");
  if (set.empty() || set == "none" || !set_by_hand(facts, "recompute")) {
    return Healthy{};  // recompute=auto takes the least that lets a pass fit
  }
  if (const std::string_view limit = facts.word("plan.memory_limit"); !limit.empty() && limit != "0") {
    return Healthy{};  // somebody wants to keep the rest
  }
  const auto memory = memory_of(facts);
  if (!memory) {
    return Abstained{"the memory in use (monitor)"};
  }
  if (kMostSaved * memory->used > memory->most) {
    return Healthy{};
  }
  Finding finding;
  finding.claim =
      fmt::format("Segments are computed again in backward (recompute={}), and memory would hold them", set);
  finding.evidence = {part_words(facts, "forward"),
                      fmt::format("{:.1f} of {:.1f} GB in use (monitor)", 1e-9 * memory->used, 1e-9 * memory->most)};
  finding.cure = "no activation checkpointing";
  finding.option = "recompute=none";
  const auto part = part_of(set);
  finding.gain = predict(
      facts.periods, [&](const Period& each) { return part.value_or(1) * each.part("forward"); }, part ? kAll : kSome);
  return finding;
}

}  // namespace

const Rule kRecomputeUnneeded = {
    .id = "recompute_unneeded",
    .level = Level::kMonitor,
    .signal = "recompute= of the plan, and the memory in use",
    .threshold = "recompute= was set by hand, and at most a tenth of the memory is in use",
    .source = "a choice; bench/results/recompute.txt: a pass of BERT-base peaks at 71 MB with, and at 472 MB without",
    .disproof = "without it a pass runs out of memory, or takes as long",
    .judge = judge,
};

}  // namespace stoker::observe::doctor
