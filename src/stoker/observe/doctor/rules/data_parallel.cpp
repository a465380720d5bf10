// SPDX-License-Identifier: Apache-2.0
// One process drives several GPUs: it copies the model to each of them in each step.
#include "stoker/observe/doctor/rules/all.h"
#include "stoker/observe/doctor/rules/rule_parts.h"

namespace stoker::observe::doctor {
namespace {

constexpr double kMost = 0.02;  // of the time

Judgement judge(const Facts& facts) {
  if (auto other = without_script(facts)) {
    return *other;
  }
  const double copying = facts.share("data_parallel").value_or(0);
  if (copying < kMost) {
    return Healthy{};
  }
  Finding finding;
  finding.claim = fmt::format(
      "DataParallel copies the model and the batch to each GPU, and results back, {} of the time", percent(copying));
  finding.evidence = {part_words(facts, "data_parallel")};
  finding.cure = "one process per GPU: DistributedDataParallel, started by torchrun";
  finding.broad = true;
  finding.in_host = true;
  // The threads of one process also share Python's lock in the forward pass.
  finding.gain = predict(facts.periods, part_of_time("data_parallel"), {.low = 0.7, .high = 1.5});
  return finding;
}

}  // namespace

const Rule kDataParallel = {
    .id = "data_parallel",
    .level = Level::kScript,
    .signal = "time in replicate, scatter and gather of torch.nn.DataParallel",
    .threshold = "2 % of the time",
    .source = "the smallest gain that is worth a change; PyTorch's documentation of DataParallel recommends the same",
    .disproof = "the GPUs are busy nearly all of the time: then the copies run beside them",
    .judge = judge,
};

}  // namespace stoker::observe::doctor
