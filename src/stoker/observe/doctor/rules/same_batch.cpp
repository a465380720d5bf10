// SPDX-License-Identifier: Apache-2.0
// Every worker reads the same samples.
#include "stoker/observe/doctor/rules/all.h"
#include "stoker/observe/doctor/rules/rule_parts.h"

namespace stoker::observe::doctor {
namespace {

Judgement judge(const Facts& facts) {
  if (auto other = without_script(facts)) {
    return *other;
  }
  const double same = facts.figure("loader.workers_with_same_batches").value_or(0);
  if (same < 2) {
    return Healthy{};
  }
  Finding finding;
  finding.claim = fmt::format("{:.0f} workers make the same batches", same);
  finding.evidence = {fmt::format("their first batches hold the same bytes; the data set is {} (script)",
                                  facts.word("loader.dataset"))};
  finding.cure = "let each worker read its own part: in __iter__, torch.utils.data.get_worker_info() says which";
  finding.danger = "an epoch trains on every sample several times";
  return finding;
}

}  // namespace

const Rule kSameBatch = {
    .id = "same_batch",
    .level = Level::kScript,
    .signal = "content of the first batches of each worker",
    .threshold = "two workers or more, all with the same first batches, which differ from each other",
    .source = "pytorch/pytorch: documentation of IterableDataset: each worker has its own copy of the data set object",
    .disproof = "the data set holds the same samples many times",
    .judge = judge,
};

}  // namespace stoker::observe::doctor
