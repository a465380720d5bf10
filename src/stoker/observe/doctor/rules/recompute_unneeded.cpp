// SPDX-License-Identifier: Apache-2.0
// Activation checkpointing computes segments again, although memory would hold all of their values.
#include "stoker/observe/doctor/rules/all.h"
#include "stoker/observe/doctor/rules/rule_parts.h"

namespace stoker::observe::doctor {
namespace {

// With recompute=all the memory of a pass had at best a 6.7th of its peak (bench/results/recompute.txt: BERT-base, 472
// and 71 MB).
constexpr double kMostSaved = 6.7;
// All segments again take about as long as forward: 0.30 to 0.37 of a step (the same).
constexpr Reach kAll = {.low = 0.75, .high = 1.25};
// Every second one half of that; of those that are named nobody knows the length: 0.02 to 0.22 of a step.
constexpr Reach kSome = {.low = 0.1, .high = 0.9};

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
  if (set.empty() || set == "none" || facts.word("origin.plan.recompute") == "measured") {
    return Healthy{};  // recompute=auto takes the least that lets a pass fit
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
  finding.gain = predict(facts.periods, part_of_time("forward"), set == "all" ? kAll : kSome);
  return finding;
}

}  // namespace

const Rule kRecomputeUnneeded = {
    .id = "recompute_unneeded",
    .level = Level::kMonitor,
    .signal = "recompute= of the plan, and the memory in use",
    .threshold = "a seventh of the memory is in use",
    .source = "bench/results/recompute.txt: a pass of BERT-base peaks at 71 MB with, and at 472 MB without",
    .disproof = "without it a pass runs out of memory, or takes as long",
    .judge = judge,
};

}  // namespace stoker::observe::doctor
