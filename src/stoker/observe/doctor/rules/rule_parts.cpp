// SPDX-License-Identifier: Apache-2.0
#include "stoker/observe/doctor/rules/rule_parts.h"

namespace stoker::observe::doctor {

Judgement judge_trace_part(const Facts& facts, const TracePart& trace_part) {
  if (facts.source != Source::kTrace) {
    return Abstained{"a recorded trace"};
  }
  if (trace_part.in_marked_steps && facts.figure("steps.marked").value_or(0) < 1) {
    return Abstained{"marks of steps: without them this may be the start of the program (profiler.step())"};
  }
  const double share = facts.share(trace_part.part).value_or(0);
  if (share < trace_part.most) {
    return Healthy{};
  }
  Finding finding;
  finding.claim = fmt::format(fmt::runtime(trace_part.claim), percent(share));
  if (const std::string_view name = facts.word(fmt::format("idle.{}.name", trace_part.part)); !name.empty()) {
    finding.claim += fmt::format(": {}", name);
  }
  finding.evidence = {part_words(facts, trace_part.part)};
  finding.cure = trace_part.cure;
  finding.gain = predict(facts.periods, part_of_time(trace_part.part), trace_part.reach);
  return finding;
}

}  // namespace stoker::observe::doctor
