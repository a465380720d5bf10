// SPDX-License-Identifier: Apache-2.0
#include "stoker/observe/doctor/rules/rule_parts.h"

namespace stoker::observe::doctor {

namespace {

// Looks at a line, of all looks at the thread that trains; 0 if nobody looked.
double looks_share(const Facts& facts, std::string_view where) {
  double all = 0, some = 0;
  for (const Site& site : facts.sites) {
    const double looks = site.part.starts_with("loader.") ? 0 : static_cast<double>(site.looks);
    all += looks;
    some += site.where == where ? looks : 0;
  }
  return all > 0 ? some / all : 0;
}

}  // namespace

WaitingCalls waiting_calls(const Facts& facts, const std::vector<std::string_view>& kinds) {
  constexpr std::size_t kMostLines = 3;
  const double step = facts.figure("step.seconds").value_or(0);
  WaitingCalls found;
  for (const WaitingCall& call : facts.waits) {  // longest first
    const bool wanted = std::ranges::any_of(kinds, [&](std::string_view kind) { return call.kind.starts_with(kind); });
    if (!wanted || call.where.empty() || step <= 0) {
      continue;
    }
    found.share += std::max(call.seconds / step, looks_share(facts, call.where));
    found.times += call.times;
    if (found.lines.size() < kMostLines) {
      found.lines.push_back(fmt::format("{} ({}): {:.3g} times and {:.3g} ms per step{} (script)", call.where, call.text,
                                        call.times, 1e3 * call.seconds,
                                        call.bytes > 0 ? fmt::format(", {:.3g} MB", 1e-6 * call.bytes) : ""));
    }
  }
  return found;
}

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
