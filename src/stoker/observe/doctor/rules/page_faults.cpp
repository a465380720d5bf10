// SPDX-License-Identifier: Apache-2.0
// Memory that a step frees goes back to the kernel, and comes back page by page in the next step.
#include "stoker/observe/doctor/rules/all.h"
#include "stoker/observe/doctor/rules/rule_parts.h"

namespace stoker::observe::doctor {
namespace {

constexpr double kMost = 0.02;  // of the time
// Of the time of the faults: new pages are in no cache either. A CNN's step spent 4.7 of 30.8 ms in the kernel and took
// 24.3 ms when freed memory was kept, one with a table of 20 MB 12.2 of 54 and 38 (2-core AMD EPYC).
constexpr Reach kReach = {.low = 0.9, .high = 1.6};
constexpr double kMostSaved = 0.5;  // of the time, before the reach: what a step computes remains

Judgement judge(const Facts& facts) {
  if (auto other = without_script(facts)) {
    return *other;
  }
  const auto share = facts.figure("process.page_fault_share"), faults = facts.figure("process.page_faults_per_step");
  if (!share || !faults) {
    return Abstained{"page faults of the thread that trains, in four periods without a fork"};
  }
  if (*share < kMost || keeps_freed_memory(facts)) {
    return Healthy{};
  }
  Finding finding;
  finding.claim =
      fmt::format("Memory that a step frees comes back page by page: {} of the time, in {:.0f} page faults per step",
                  percent(*share), *faults);
  const double bytes = facts.figure("page_fault.bytes").value_or(0) * *faults;
  finding.evidence = {fmt::format("the thread that trains gets {:.1f} MiB of new pages per step (script, {})",
                                  bytes / (1 << 20), facts.window())};
  finding.cure =
      "let the C library keep freed memory, in the environment of the program, or use jemalloc or tcmalloc; a process "
      "may then need up to three times the memory";
  finding.option = "MALLOC_TRIM_THRESHOLD_=17179869184 MALLOC_MMAP_MAX_=0";
  finding.in_host = true;
  finding.gain = predict(facts.periods, share_of_time(std::min(*share, kMostSaved)), kReach);
  return finding;
}

}  // namespace

const Rule kPageFaults = {
    .id = "page_faults",
    .level = Level::kScript,
    .signal = "page faults and time in the kernel, of the thread that trains; what a fault costs here",
    .threshold = "2 % of the time",
    .source =
        "the smallest gain that is worth a change; torch's CPU allocator keeps nothing "
        "(docs/decisions/freed-memory.md)",
    .disproof = "the step takes as long with the settings: then the pages are of files that each step maps again",
    .judge = judge,
};

}  // namespace stoker::observe::doctor
