// SPDX-License-Identifier: Apache-2.0
// Ranks add up their gradients after each pass of an accumulated step, not after the last one.
#include "stoker/observe/doctor/rules/all.h"
#include "stoker/observe/doctor/rules/rule_parts.h"

namespace stoker::observe::doctor {
namespace {

constexpr double kMost = 1.5;  // sums per step

Judgement judge(const Facts& facts) {
  if (auto other = without_script(facts)) {
    return *other;
  }
  const auto steps = facts.figure("ranks.step"), syncs = facts.figure("ranks.syncs");
  if (!steps || !syncs || *steps <= 0) {
    return Healthy{};  // one rank
  }
  const double each = *syncs / *steps;
  if (each < kMost) {
    return Healthy{};
  }
  Finding finding;
  finding.claim = fmt::format("Ranks add up their gradients {:.1f} times per step of the optimizer", each);
  finding.evidence = {part_words(facts, "backward"),
                      fmt::format("{:.0f} passes with a sum in {:.0f} steps (script)", *syncs, *steps)};
  finding.cure = "with model.no_sync(): around all passes of a step but the last one";
  finding.option = "no_sync()";
  // Of a backward pass, what its thread does not compute, it waits for the sum.
  finding.gain = predict(
      facts.periods,
      [&](const Period& period) {
        const auto backward = period.parts.find("backward");
        const double waiting =
            backward == period.parts.end() ? 0 : std::max(backward->second.seconds - backward->second.cpu_seconds, 0.0);
        return waiting * (1 - 1 / each);
      },
      {.low = 0.9, .high = 1.6});
  return finding;
}

}  // namespace

const Rule kReduceEachPass = {
    .id = "reduce_every_microbatch",
    .level = Level::kScript,
    .signal = "passes of DistributedDataParallel that add up gradients, per step of the optimizer; waiting in backward",
    .threshold = "1.5 sums per step",
    .source = "a choice; the documentation of DistributedDataParallel.no_sync: one sum per step is enough",
    .disproof = "one of two optimizers steps after each pass",
    .judge = judge,
};

}  // namespace stoker::observe::doctor
