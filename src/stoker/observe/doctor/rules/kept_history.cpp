// SPDX-License-Identifier: Apache-2.0
// The graphs of all steps stay alive, so memory grows until there is none.
#include "stoker/observe/doctor/rules/all.h"
#include "stoker/observe/doctor/rules/rule_parts.h"

namespace stoker::observe::doctor {
namespace {

constexpr double kMost = 0.5;  // graphs, or nodes of one graph, per step: each step adds at least one

Judgement judge(const Facts& facts) {
  if (auto other = without_script(facts)) {
    return *other;
  }
  const auto deeper = facts.figure("graphs.deeper_per_step"), more = facts.figure("graphs.more_per_step");
  if (!deeper || !more) {
    return Abstained{"two looks at the living graphs, which the script's first 40 steps give"};
  }
  if (*deeper < kMost && *more < kMost) {
    return Healthy{};
  }
  const std::string_view name = facts.word("graphs.name");
  Finding finding;
  finding.claim =
      fmt::format("Each step's graph stays alive{}{}", name.empty() ? "" : fmt::format(": `{}` holds it", name),
                  name.empty() ? "" : at_place(facts, "graphs.where"));
  finding.evidence = {*deeper < kMost
                          ? fmt::format("per step {:.1f} more graphs (script)", *more)
                          : fmt::format("per step the deepest graph is {:.1f} nodes deeper (script)", *deeper)};
  if (const auto growth = facts.figure("process.resident_bytes_per_step")) {
    finding.evidence.push_back(fmt::format("memory: {:+.2f} MB per step (script)", 1e-6 * *growth));
  }
  finding.cure = facts.word("graphs.holder") == "list"
                     ? fmt::format(
                           "keep numbers, not tensors with a graph: {}.append(loss.detach()), or loss.item() "
                           "where it is printed",
                           name)
                     : "add up numbers, not tensors with a graph: total += loss.detach(), or loss.item() where it is "
                       "printed";
  finding.danger = "memory grows with every step";
  return finding;
}

}  // namespace

const Rule kKeptHistory = {
    .id = "kept_history",
    .level = Level::kScript,
    .signal = "graphs that are alive after step 15 and after step 40",
    .threshold = "0.5 graphs or nodes per step",
    .source = "a training that frees its graphs has as many after each step",
    .disproof = "the number stops growing at the end of a window of steps: then it is truncated back-propagation",
    .judge = judge,
};

}  // namespace stoker::observe::doctor
