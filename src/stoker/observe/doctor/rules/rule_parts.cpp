// SPDX-License-Identifier: Apache-2.0
#include "stoker/observe/doctor/rules/rule_parts.h"

#include <cstdlib>
#include <map>

namespace stoker::observe::doctor {

namespace {

// Looks at a line itself, not at what it calls in libraries, of all looks at the thread that trains; 0 if nobody
// looked.
double looks_share(const Facts& facts, std::string_view where) {
  double all = 0, some = 0;
  for (const Site& site : facts.sites) {
    const double looks = site.part.starts_with("loader.") ? 0 : static_cast<double>(site.looks);
    all += looks;
    some += site.where == where && site.module.empty() ? looks : 0;
  }
  return all > 0 ? some / all : 0;
}

// A line may do more than the call; what it makes to copy it belongs to the copy.
constexpr double kMostOfLine = 5;  // times the call

}  // namespace

bool keeps_freed_memory(const Facts& facts) {
  const auto variable = [&](std::string_view name) {
    return std::string(facts.word(fmt::format("switch.environment.{}", name)));
  };
  const std::string trim = variable("MALLOC_TRIM_THRESHOLD_"), most_maps = variable("MALLOC_MMAP_MAX_");
  const std::string tunables = variable("GLIBC_TUNABLES");
  // The first alone has each block over 128 KiB mapped again (mallopt(3)).
  constexpr double kLarge = 1 << 30;
  return (std::atof(trim.c_str()) >= kLarge && most_maps == "0") ||
         (tunables.find("malloc.trim_threshold") != std::string::npos &&
          tunables.find("malloc.mmap_max=0") != std::string::npos) ||
         variable("LD_PRELOAD").find("malloc") != std::string::npos;  // jemalloc, tcmalloc, mimalloc
}

Prediction predict_less_computing(const Facts& facts, double share, Reach reach, double of_host) {
  // Where the device is the limit, the host's part is known from a recording that took 1.4 to 2.3 times as long,
  // by 1.8.
  constexpr double kMoreHost = 1.25, kLessHost = 0.8;
  const double step = facts.figure("step.seconds").value_or(0);
  const double known = step > 0 ? std::min(facts.figure("host.seconds").value_or(0) / step, 1.0) : 0;
  const double device_share = step > 0 ? facts.figure("device.seconds").value_or(0) / step : 0;
  const auto host_times = [&](double factor) { return known < device_share ? std::min(factor * known, 1.0) : known; };
  const auto with = [&](double part, double host) {
    const double host_after = host * (of_host < 0 ? 1 - of_host : 1 - part * of_host);
    const double less = std::min(part * share, 0.95);
    const auto saved = [=](const Period& period) {
      const double compute = period.part("compute");
      const double device = compute + period.part("communication") + period.part("copy") + period.part("overlap");
      const double after = std::max(host_after * period.seconds, device - less * compute);
      return std::max(std::max(host * period.seconds, device) - after, 0.0);
    };
    return predict(facts.periods, saved, {.low = 1, .high = 1});
  };
  const double likely = with((reach.low + reach.high) / 2, known).speedup;
  return {likely, std::min(with(reach.low, host_times(kMoreHost)).low, likely),
          std::max(with(reach.high, host_times(kLessHost)).high, likely)};
}

std::string watched_gpu(const Facts& facts) {
  const auto found = facts.figures.lower_bound("gpu");
  const std::string_view name = found == facts.figures.end() ? std::string_view() : found->first;
  return name.starts_with("gpu") ? std::string(name.substr(0, name.find('.'))) : "";
}

double fitting_rows(const Facts& facts) {
  constexpr double kUsable = 0.9;  // of the memory: the rest is for CUDA itself, and for pieces that fit nothing
  const auto rest = facts.figure("memory.rest_bytes"), peak = facts.figure("memory.peak_bytes");
  const auto total = facts.figure("memory.total_bytes"), rows = facts.figure("loader.batch");
  if (!rest || !peak || !total || !rows || *peak <= *rest) {
    return 0;
  }
  return std::floor(*rows * std::max(kUsable * *total - *rest, 0.0) / (*peak - *rest));
}

WaitingCalls waiting_calls(const Facts& facts, const std::vector<std::string_view>& kinds) {
  constexpr std::size_t kMostLines = 3;
  const double step = facts.figure("step.seconds").value_or(0);
  WaitingCalls found;
  std::map<std::string_view, double> lines;      // measured seconds
  for (const WaitingCall& call : facts.waits) {  // longest first
    const bool wanted = std::ranges::any_of(kinds, [&](std::string_view kind) { return call.kind.starts_with(kind); });
    if (!wanted || call.where.empty() || step <= 0) {
      continue;
    }
    lines[call.where] += call.seconds;
    if (found.lines.size() < kMostLines) {
      found.lines.push_back(fmt::format("{} ({}): {:.3g} times and {:.3g} ms per step{} (script)", call.where,
                                        call.text, call.times, 1e3 * call.seconds,
                                        call.bytes > 0 ? fmt::format(", {:.3g} MB", 1e-6 * call.bytes) : ""));
    }
  }
  for (const auto& [where, seconds] : lines) {
    const double measured = seconds / step;
    found.share += std::max(measured, std::min(looks_share(facts, where), kMostOfLine * measured));
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
  finding.gain = predict(facts.periods, replayed(facts, trace_part.part), trace_part.reach);
  return finding;
}

}  // namespace stoker::observe::doctor
