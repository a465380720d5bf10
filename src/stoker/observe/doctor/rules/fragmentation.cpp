// SPDX-License-Identifier: Apache-2.0
// The GPU has no free block that is large enough: cudaMalloc fails, and the allocator frees its cache and retries.
#include "stoker/observe/doctor/rules/all.h"
#include "stoker/observe/doctor/rules/rule_parts.h"

namespace stoker::observe::doctor {
namespace {

constexpr double kMost = 0.1;  // times per step

Judgement judge(const Facts& facts) {
  if (auto other = without_script(facts)) {
    return *other;
  }
  const double retries = facts.figure("memory.retries_per_step").value_or(0);
  if (retries < kMost) {
    return Healthy{};
  }
  const double peak = facts.figure("memory.peak_bytes").value_or(0);
  const double total = facts.figure("memory.total_bytes").value_or(0);
  Finding finding;
  finding.claim = fmt::format(
      "cudaMalloc fails {:.0f} times in 100 steps: each time the caching allocator frees its cache and retries",
      100 * retries);
  finding.evidence = {fmt::format("tensors took {:.1f} of {:.1f} GB at most (script)", 1e-9 * peak, 1e-9 * total)};
  finding.cure =
      "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True, against fragmentation; if it goes on, a smaller batch";
  finding.option = "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True";
  finding.danger = "each time the GPU stands still, and a batch that is a little larger ends the training";
  return finding;
}

}  // namespace

const Rule kFragmentation = {
    .id = "fragmentation",
    .level = Level::kScript,
    .signal = "num_alloc_retries of torch.cuda.memory_stats() between two steps",
    .threshold = "once in ten steps",
    .source = "a choice; a training that fits has none after its first steps",
    .disproof = "it ends after the first steps: then they were the largest",
    .judge = judge,
};

}  // namespace stoker::observe::doctor
