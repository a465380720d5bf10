// SPDX-License-Identifier: Apache-2.0
// Each epoch waits until new workers have started and made their first batches.
#include "stoker/observe/doctor/rules/all.h"
#include "stoker/observe/doctor/rules/rule_parts.h"

namespace stoker::observe::doctor {
namespace {

constexpr double kMost = 0.02;  // of the time

Judgement judge(const Facts& facts) {
  if (auto other = without_script(facts)) {
    return *other;
  }
  const double share = facts.share("loader_start").value_or(0);
  if (share < kMost || facts.figure("loader.persistent").value_or(0) > 0) {
    return Healthy{};
  }
  const double starts = facts.figure("loader.starts").value_or(0);
  Finding finding;
  finding.claim =
      fmt::format("Starting the loader's workers takes {} of the time, again in each epoch", percent(share));
  finding.evidence = {part_words(facts, "loader_start"),
                      fmt::format("{:.0f} starts of {:.0f} workers by {} (script)", starts,
                                  facts.figure("loader.workers").value_or(0), facts.word("loader.start_method"))};
  finding.cure = fmt::format("keep the workers between epochs: persistent_workers=True in the DataLoader{}",
                             at_place(facts, "loader.where"));
  finding.option = "persistent_workers=True";
  // After a fork each page that the training writes is copied once, mostly in the optimizer. Joining the last
  // workers takes time, too: three networks saved 1.2 to 1.4 of what is known of (bench/results/doctor-scripts.txt).
  const double start = facts.figure("loader.seconds_per_start").value_or(0);
  const double longer = facts.figure("loader.longer_first_step").value_or(0);
  if (longer > 0) {
    finding.evidence.push_back(fmt::format(
        "the first step after a start takes {:.0f} ms more than others: pages are copied (script)", 1e3 * longer));
  }
  const double more = start > 0 ? 1 + longer / start : 1;
  finding.gain =
      predict(facts.periods,
              [more](const Period& each) { return std::min(more * each.part("loader_start"), 0.95 * each.seconds); },
              {.low = 1, .high = 1.4});
  return finding;
}

}  // namespace

const Rule kEpochRestart = {
    .id = "epoch_restart",
    .level = Level::kScript,
    .signal = "time between the start of an epoch and its first batch, when workers were started for it",
    .threshold = "2 % of the time",
    .source =
        "the smallest gain that is worth a change; metatensor/metatrain#1271: 1.10 to 0.74 s with persistent workers",
    .disproof =
        "the first batch of an epoch is as late with workers that persist: then the sampler or the first read is the "
        "cause",
    .judge = judge,
};

}  // namespace stoker::observe::doctor
