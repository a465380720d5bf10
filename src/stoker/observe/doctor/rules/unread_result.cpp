// SPDX-License-Identifier: Apache-2.0
// A tensor was to be moved or converted, and the copy was thrown away.
#include "stoker/observe/doctor/rules/all.h"
#include "stoker/observe/doctor/rules/rule_parts.h"

namespace stoker::observe::doctor {
namespace {

Judgement judge(const Facts& facts) {
  if (auto other = without_script(facts)) {
    return *other;
  }
  const std::string_view where = facts.word("dropped_result.where");
  if (where.empty()) {
    return Healthy{};
  }
  Finding finding;
  finding.claim = fmt::format("The result of .{}() is thrown away at {}", facts.word("dropped_result.name"), where);
  finding.evidence = {fmt::format("{} (script)", facts.word("dropped_result.text"))};
  finding.cure = "take it: x = x.to(device); a tensor's .to() returns a copy, only a module's works in place";
  finding.danger = "the tensor stays as it was";
  return finding;
}

}  // namespace

const Rule kUnreadResult = {
    .id = "unread_result",
    .level = Level::kScript,
    .signal = "calls of .to() and others, in all that a step runs of the script, whose result nobody takes, on tensors",
    .threshold = "one such call",
    .source = "a call without effect is never meant",
    .disproof = "the name holds a module there",
    .judge = judge,
};

}  // namespace stoker::observe::doctor
