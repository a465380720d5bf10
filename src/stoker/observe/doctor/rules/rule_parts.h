// SPDX-License-Identifier: Apache-2.0
// Words and small sums that several rules need. Used by rules/ only. Thread-safe: no state.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "stoker/base/fmt.h"
#include "stoker/observe/doctor/rule.h"

namespace stoker::observe::doctor {

inline std::string percent(double share) {
  return share < 0.0995 ? fmt::format("{:.1f} %", 100 * share) : fmt::format("{:.0f} %", 100 * share);
}

// What recorded the time of a training's parts, for people.
[[nodiscard]] inline std::string_view recorder(const Facts& facts) {
  return facts.source == Source::kRun ? "anatomy" : source_name(facts.source);
}

// "fetch: 61 % of the time (anatomy, steps 12 to 450)"; of a trace also in how many pieces.
inline std::string part_words(const Facts& facts, std::string_view part) {
  const auto times = facts.figure(fmt::format("idle.{}.times", part));
  return fmt::format("{}: {} of the time{} ({}, {})", part, percent(facts.share(part).value_or(0)),
                     times ? fmt::format(", {:.3g} times per step", *times) : "", recorder(facts), facts.window());
}

// Cores that the process may use at once; none if nobody told.
inline std::optional<double> cores_of(const Facts& facts) {
  const auto limit = facts.figure("cgroup.cpu_limit_cores"), all = facts.figure("machine.cores");
  return limit && all ? std::min(*limit, *all) : limit ? limit : all;
}

// A quota of cores is used up in this share of its periods: then the kernel's stops count as waiting for a core, too.
inline constexpr double kQuotaUsedUp = 0.05;
[[nodiscard]] inline bool quota_is_used_up(const Facts& facts) {
  return facts.figure("cgroup.throttled_share").value_or(0) >= kQuotaUsedUp;
}

// Of these, what other programs use; none without the monitor.
inline std::optional<double> busy_elsewhere(const Facts& facts) {
  const auto busy = facts.figure("machine.busy_cores"), own = facts.figure("process.cpu_cores");
  return busy && own ? std::optional(std::max(*busy - *own, 0.0)) : std::nullopt;
}

// "gpu0": the GPU that the monitor watched; empty: none.
[[nodiscard]] std::string watched_gpu(const Facts& facts);

// A rank that is the slowest in this share of the steps is a straggler; without one, the work of the ranks is uneven.
inline constexpr double kSameRank = 0.75;

// Whether the C library of a script keeps freed memory, since its environment says so (page_faults.cpp).
[[nodiscard]] bool keeps_freed_memory(const Facts& facts);

// Whether the weights of a script are on a GPU.
[[nodiscard]] inline bool on_gpu(const Facts& facts) {
  return facts.word("switch.optimizer.devices").find("cuda") != std::string_view::npos;
}

// Whether ranks compute on cores, which they take from each other, and not on devices of their own.
[[nodiscard]] inline bool ranks_share_cores(const Facts& facts) {
  return facts.source == Source::kScript && !on_gpu(facts);
}

// Rows of a batch that would fill the GPU's memory, from what a step takes beyond what stays between steps. 0: unknown.
[[nodiscard]] double fitting_rows(const Facts& facts);

// The call that most idle time of a kind is charged to; "no call that has a name".
inline std::string idle_name(const Facts& facts, std::string_view part) {
  const std::string_view name = facts.word(fmt::format("idle.{}.name", part));
  return name.empty() ? "no call that has a name" : std::string(name);
}

inline Saving part_of_time(std::string_view part) {
  return [part](const Period& period) { return period.part(part); };
}

// The idle time of a kind of a trace, as far as a replay without its cause saves it: less if the next limit is near,
// more if the host gets ahead of the device again.
inline Saving replayed(const Facts& facts, std::string_view part) {
  const auto saved = facts.figure(fmt::format("replay.{}.saved_share", part));
  const double idle = facts.share(part).value_or(0);
  const double factor = saved && idle > 0 ? *saved / idle : 1;
  return [part, factor](const Period& period) {
    return std::clamp(factor * period.part(part), 0.0, 0.99 * period.seconds);
  };
}

// A saving that is the same share of each period.
inline Saving share_of_time(double share) {
  return [share](const Period& period) { return share * period.seconds; };
}

// Of computing on a device that becomes shorter by a share, and of the host's work that becomes shorter by another
// (longer, if it is negative). Where the host's part of a step is known (burst.h), a step takes as long as the slower
// of both. reach: of what becomes shorter.
[[nodiscard]] Prediction predict_less_computing(const Facts& facts, double share, Reach reach, double of_host = 0);

// The script's calls of some kinds that wait for the GPU or copy to it.
struct WaitingCalls {
  double share = 0;  // of the time: as measured, or as often as their lines were looked at, whichever is more
  std::vector<std::string> lines;  // as evidence: at most three, the longest first
};
// Shares are of "step.seconds", which only a script's burst has.
[[nodiscard]] WaitingCalls waiting_calls(const Facts& facts, const std::vector<std::string_view>& kinds);

// The most that the host's work can become less before the device is the limit, as a share of the time; 1 without a
// script's burst.
[[nodiscard]] inline double host_share_above_device(const Facts& facts) {
  const auto step = facts.figure("step.seconds"), device = facts.figure("device.seconds");
  return step && device && *step > 0 ? std::max(1 - *device / *step, 0.0) : 1;
}

// What a rule says that only reads a Python script's records, if there are none: Stoker itself does not have the fault.
[[nodiscard]] inline std::optional<Judgement> without_script(const Facts& facts) {
  if (facts.source == Source::kScript) {
    return std::nullopt;
  }
  return facts.source == Source::kRun ? Judgement(Healthy{})
                                      : Judgement(Abstained{"the script's records (stoker doctor -- python ...)"});
}

// What a rule says that reads a figure of a device's work, if there is none.
[[nodiscard]] inline std::optional<Judgement> without_device(const Facts& facts, std::string_view figure) {
  if (facts.source != Source::kTrace) {
    return Abstained{"a recorded trace"};
  }
  return facts.figure(figure) ? std::nullopt : std::optional<Judgement>(Abstained{"work of a device"});
}

// The same of a rule that compares ranks step by step.
[[nodiscard]] inline std::optional<Judgement> without_ranks(const Facts& facts) {
  if (facts.figure("ranks.waiting_share") && facts.figure("ranks.slowest_share")) {
    return std::nullopt;
  }
  if (facts.source == Source::kTrace) {
    return Abstained{"traces of all ranks"};
  }
  if (auto other = without_script(facts)) {
    return other;
  }
  return facts.figure("ranks.world").value_or(1) > 1 ? Judgement(Abstained{"the other ranks' records"})
                                                     : Judgement(Healthy{});
}

// " at train.py:12"; empty if the place is unknown.
[[nodiscard]] inline std::string at_place(const Facts& facts, std::string_view word) {
  const std::string_view where = facts.word(word);
  return where.empty() ? "" : fmt::format(" at {}", where);
}

// What most rules of a trace look at: a part of the time that is too long.
struct TracePart {
  std::string_view part;
  double most = 0;  // share of the time
  Reach reach;
  bool in_marked_steps = false;  // else it may be the start of the program
  const char* claim = "";        // with a place for the share; the call that most of it is charged to follows
  const char* cure = "";
};
[[nodiscard]] Judgement judge_trace_part(const Facts& facts, const TracePart& trace_part);

}  // namespace stoker::observe::doctor
