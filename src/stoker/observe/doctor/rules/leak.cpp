// SPDX-License-Identifier: Apache-2.0
// Garbage collection is off, and objects that refer to each other stay: memory grows until there is none.
#include "stoker/observe/doctor/rules/all.h"
#include "stoker/observe/doctor/rules/rule_parts.h"

namespace stoker::observe::doctor {
namespace {

constexpr double kMost = 5;  // containers per step

Judgement judge(const Facts& facts) {
  if (auto other = without_script(facts)) {
    return *other;
  }
  if (!facts.figure("graphs.deeper_per_step")) {
    return Abstained{"two looks at living objects, which the script's first 40 steps give"};
  }
  const auto uncollected = facts.figure("graphs.uncollected_per_step");  // only where collection is off
  if (!uncollected || *uncollected < kMost) {
    return Healthy{};
  }
  Finding finding;
  finding.claim = fmt::format("Garbage collection is off, and each step leaves {:.0f} objects that only it would free",
                              *uncollected);
  finding.evidence = {"gc.isenabled() is False (script)"};
  if (const auto growth = facts.figure("process.resident_bytes_per_step")) {
    finding.evidence.push_back(fmt::format("memory: {:+.2f} MB per step (script)", 1e-6 * *growth));
  }
  finding.cure =
      "gc.collect() every few hundred steps, or leave collection on and call gc.freeze() before the training";
  finding.danger = "memory grows with every step";
  return finding;
}

}  // namespace

const Rule kLeak = {
    .id = "leak",
    .level = Level::kScript,
    .signal = "with garbage collection off: containers that were made and not freed, after step 15 and after step 40",
    .threshold = "5 containers per step",
    .source =
        "facebookresearch/dinov3#150: gc.disable() in the loop, and the worker was killed; loops without cycles "
        "leave 1.1 to 1.4 (tests/doctor/cases/gc_off.py)",
    .disproof = "gc.collect() after a hundred steps frees no memory",
    .judge = judge,
};

}  // namespace stoker::observe::doctor
