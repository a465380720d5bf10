// SPDX-License-Identifier: Apache-2.0
// Checkpoints stop the training: they are written too often for their size.
#include "stoker/observe/doctor/rules/all.h"
#include "stoker/observe/doctor/rules/rule_parts.h"

namespace stoker::observe::doctor {
namespace {

constexpr double kMost = 0.02;  // of the time
// Chosen by bench/doctor/cures.py. More than all: later steps gain a little, too.
constexpr Reach kReach = {.low = 0.95, .high = 1.1};
constexpr double kAimed = 0.01;  // after the cure

Judgement judge(const Facts& facts) {
  const auto share = facts.share("checkpoint");
  if (!share || facts.source == Source::kTrace) {
    return Abstained{"the time that checkpoints take (anatomy)"};
  }
  if (*share < kMost) {
    return Healthy{};
  }
  Finding finding;
  finding.claim = fmt::format("Checkpoints stop the training for {} of the time", percent(*share));
  finding.evidence = {part_words(facts, "checkpoint")};
  const auto saved = facts.figure("checkpoints.count");
  const double less = 1 - kAimed / *share;
  // The steps after a checkpoint are slower: it has emptied the caches of the cores.
  const double after = facts.figure("checkpoints.slower_after_seconds").value_or(0) * saved.value_or(0);
  const double with_after = 1 + after / (*share * facts.seconds());
  finding.gain = predict(
      facts.periods, [&](const Period& each) { return less * with_after * each.part("checkpoint"); }, kReach);
  if (saved && *saved > 0) {
    const double every = static_cast<double>(facts.steps()) / *saved;
    const auto rarer = static_cast<std::int64_t>(std::ceil(every * *share / kAimed));
    finding.evidence.push_back(
        fmt::format("{:.0f} checkpoints, one in {:.0f} steps ({})", *saved, every, source_name(facts.source)));
    if (after > 0) {
      finding.evidence.push_back(
          fmt::format("the step after one takes {:.3g} ms longer than the others (run)", 1e3 * after / *saved));
    }
    finding.cure = fmt::format("a checkpoint every {} steps", rarer);
    finding.option = facts.source == Source::kRun ? fmt::format("save_every={}", rarer) : "";
  } else {
    finding.cure = "fewer checkpoints";
  }
  return finding;
}

}  // namespace

const Rule kCheckpointStall = {
    .id = "checkpoint_stall",
    .level = Level::kRun,
    .signal = "share of time in checkpoints",
    .threshold = "2 % of the time",
    .source = "the smallest gain that is worth a change; after the cure checkpoints take 1 %",
    .disproof = "rarer checkpoints leave the share as it is: then each one has become slower",
    .judge = judge,
};

}  // namespace stoker::observe::doctor
