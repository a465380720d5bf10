// SPDX-License-Identifier: Apache-2.0
// Workers copy the memory that they share with the training, page by page.
#include "stoker/observe/doctor/rules/all.h"
#include "stoker/observe/doctor/rules/rule_parts.h"

namespace stoker::observe::doctor {
namespace {

constexpr double kMost = 1e6;  // bytes per second and worker

Judgement judge(const Facts& facts) {
  if (auto other = without_script(facts)) {
    return *other;
  }
  const auto growth = facts.figure("loader.copied_bytes_per_second");
  if (!growth) {
    return facts.figure("loader.workers").value_or(0) > 0 ? Judgement(Abstained{"workers that live for some seconds"})
                                                          : Judgement(Healthy{});
  }
  if (*growth < kMost) {
    return Healthy{};
  }
  Finding finding;
  finding.claim = fmt::format("Each worker copies {:.1f} MB per second of the memory that it shared with the training",
                              1e-6 * *growth);
  finding.evidence = {fmt::format("private memory of a worker: {:.0f} MB (script)",
                                  1e-6 * facts.figure("loader.private_bytes").value_or(0))};
  finding.cure =
      "keep the data set's items in arrays or tensors: reading a Python list or dict writes its counts, "
      "and each worker then gets its own copy of the page";
  finding.danger = "main memory fills up";
  return finding;
}

}  // namespace

const Rule kHostLeak = {
    .id = "host_leak",
    .level = Level::kScript,
    .signal = "memory of a worker that was shared and is its own now, per second",
    .threshold = "1 MB per second and worker",
    .source =
        "pytorch/pytorch#13246: Python lists that many workers read; a worker whose data lies in arrays copies 0.01 MB "
        "per second (tests/doctor/cases/host_leak.py)",
    .disproof = "it ends growing when each item was read once, far below the free memory",
    .judge = judge,
};

}  // namespace stoker::observe::doctor
