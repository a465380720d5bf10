// SPDX-License-Identifier: Apache-2.0
// Words and small sums that several rules need. Used by rules/ only. Thread-safe: no state.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>

#include "stoker/base/fmt.h"
#include "stoker/observe/doctor/rule.h"

namespace stoker::observe::doctor {

inline std::string percent(double share) {
  return share < 0.0995 ? fmt::format("{:.1f} %", 100 * share) : fmt::format("{:.0f} %", 100 * share);
}

// "fetch: 61 % of the time (anatomy, steps 12 to 450)"
inline std::string part_words(const Facts& facts, std::string_view part) {
  return fmt::format("{}: {} of the time (anatomy, {})", part, percent(facts.share(part).value_or(0)), facts.window());
}

// Cores that the process may use at once; none if nobody told.
inline std::optional<double> cores_of(const Facts& facts) {
  const auto limit = facts.figure("cgroup.cpu_limit_cores"), all = facts.figure("machine.cores");
  return limit && all ? std::min(*limit, *all) : limit ? limit : all;
}

// Of these, what other programs use; none without the monitor.
inline std::optional<double> busy_elsewhere(const Facts& facts) {
  const auto busy = facts.figure("machine.busy_cores"), own = facts.figure("process.cpu_cores");
  return busy && own ? std::optional(std::max(*busy - *own, 0.0)) : std::nullopt;
}

// The call that most idle time of a kind is charged to; "no call that has a name".
inline std::string idle_name(const Facts& facts, std::string_view part) {
  const std::string_view name = facts.word(fmt::format("idle.{}.name", part));
  return name.empty() ? "no call that has a name" : std::string(name);
}

// "sync: 12 % of the time, in 34 pieces per step (trace, steps 1 to 6)"
inline std::vector<std::string> idle_words(const Facts& facts, std::string_view part) {
  const auto times = facts.figure(fmt::format("idle.{}.times", part));
  return {fmt::format("{}: {} of the time{} (trace, {})", part, percent(facts.share(part).value_or(0)),
                      times ? fmt::format(", in {:.3g} pieces per step", *times) : "", facts.window())};
}

inline Saving part_of_time(std::string_view part) {
  return [part](const Period& period) { return period.part(part); };
}

// A saving that is the same share of each period.
inline Saving share_of_time(double share) {
  return [share](const Period& period) { return share * period.seconds; };
}

}  // namespace stoker::observe::doctor
