// SPDX-License-Identifier: Apache-2.0
// Memory that a step frees goes back to the kernel, and comes back page by page in the next step.
#include "stoker/observe/doctor/rules/all.h"
#include "stoker/observe/doctor/rules/rule_parts.h"

namespace stoker::observe::doctor {
namespace {

constexpr double kMost = 0.02;  // of the time
// Of the time in the kernel: new pages are in no cache either. A CNN's step spent 4.7 of 30.8 ms in the kernel and took
// 24.3 ms when freed memory was kept, one with a table of 20 MB 12.2 of 54 and 38 (2-core AMD EPYC).
constexpr Reach kReach = {.low = 0.9, .high = 1.6};

// A loader whose workers start this often per period forks the process, and each fork makes pages fault once more.
constexpr double kForks = 0.5;

// Whether the environment already says how freed memory is handled.
bool is_set(const Facts& facts) {
  const auto names = [&](std::string_view variable, std::string_view part) {
    return facts.word(fmt::format("switch.environment.{}", variable)).find(part) != std::string_view::npos;
  };
  return !facts.word("switch.environment.MALLOC_TRIM_THRESHOLD_").empty() || names("GLIBC_TUNABLES", "malloc") ||
         names("LD_PRELOAD", "malloc");
}

Judgement judge(const Facts& facts) {
  if (auto other = without_script(facts)) {
    return *other;
  }
  const auto share = facts.figure("process.page_fault_share"), faults = facts.figure("process.page_faults_per_step");
  if (!share || !faults) {
    return Abstained{"page faults of the thread that trains, of four periods"};
  }
  const double forks = facts.figure("loader.workers").value_or(0) > 0 ? facts.figure("loader.starts").value_or(0) : 0;
  if (*share < kMost || is_set(facts) || forks > kForks * static_cast<double>(facts.periods.size())) {
    return Healthy{};
  }
  Finding finding;
  finding.claim =
      fmt::format("Memory that a step frees comes back page by page: {} of the time, in {:.0f} page faults per step",
                  percent(*share), *faults);
  finding.evidence = {fmt::format("the kernel gives the thread that trains {:.1f} MiB per step anew (script, {})",
                                  *faults * 4096 / (1 << 20), facts.window())};
  finding.cure =
      "let the C library keep freed memory, by the environment of the program; it then gives less back to others. "
      "jemalloc or tcmalloc do so, too";
  finding.option = "MALLOC_TRIM_THRESHOLD_=17179869184, MALLOC_MMAP_MAX_=0";
  finding.gain = predict(facts.periods, share_of_time(std::min(*share, 0.5)), kReach);
  return finding;
}

}  // namespace

const Rule kPageFaults = {
    .id = "page_faults",
    .level = Level::kScript,
    .signal =
        "page faults without a disk and time in the kernel, of the thread that trains, where the process does not grow",
    .threshold = "2 % of the time",
    .source =
        "the smallest gain that is worth a change; torch's CPU allocator keeps nothing "
        "(docs/decisions/freed-memory.md)",
    .disproof = "the step takes as long with the settings: then the pages are files in memory, or copies after a fork",
    .judge = judge,
};

}  // namespace stoker::observe::doctor
