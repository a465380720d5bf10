// SPDX-License-Identifier: Apache-2.0
#include "stoker/observe/anatomy/where_time_went.h"

#include <algorithm>

#include "stoker/base/file.h"
#include "stoker/base/fmt.h"
#include "stoker/base/sparkline.h"
#include "stoker/base/thousands.h"

namespace stoker::observe {
namespace {

constexpr double kShown = 5e-4;  // of the time: phases below are left out, in one line

double seconds_of(const std::vector<core::PhaseTime>& all, const std::string& name) {
  const auto found = std::ranges::find(all, name, &core::PhaseTime::name);
  return found == all.end() ? 0 : found->seconds;
}

// The period of two that follow each other: only what text() reads.
core::Anatomy merged(core::Anatomy first, const core::Anatomy& second) {
  for (const core::PhaseTime& phase : second.phases) {
    const auto found = std::ranges::find(first.phases, phase.name, &core::PhaseTime::name);
    if (found == first.phases.end()) {
      first.phases.push_back(phase);
    } else {
      found->seconds += phase.seconds;
    }
  }
  first.steps += second.steps;
  first.seconds += second.seconds;
  return first;
}

// Milliseconds with three digits: "0.012", "18.2", "1,250".
std::string ms(double seconds) {
  const double value = seconds * 1e3;
  if (seconds <= 0) {
    return seconds < 0 ? "-" : "0";
  }
  return value >= 999.5    ? thousands(static_cast<std::int64_t>(value + 0.5))
         : value >= 99.95  ? fmt::format("{:.0f}", value)
         : value >= 9.995  ? fmt::format("{:.1f}", value)
         : value >= 0.9995 ? fmt::format("{:.2f}", value)
                           : fmt::format("{:.3f}", value);
}

std::string seconds_text(double seconds) {
  return seconds >= 1000 ? thousands(static_cast<std::int64_t>(seconds + 0.5)) : fmt::format("{:.3g}", seconds);
}

std::string percent(double share) {
  return share < 0 ? "-" : share < 0.0995 ? fmt::format("{:.1f} %", 100 * share) : fmt::format("{:.0f} %", 100 * share);
}

}  // namespace

void WhereTimeWent::add(const core::Anatomy& period) {
  if (!periods_.empty() && (in_last_ < per_place_ || period.steps == 0)) {
    periods_.back() = merged(std::move(periods_.back()), period);
    ++in_last_;
    return;
  }
  periods_.push_back(period);
  in_last_ = 1;
  if (periods_.size() > kMostPeriods) {
    std::vector<core::Anatomy> halved;
    for (std::size_t i = 0; i < periods_.size(); i += 2) {
      halved.push_back(i + 1 < periods_.size() ? merged(periods_[i], periods_[i + 1]) : periods_[i]);
    }
    periods_ = std::move(halved);
    per_place_ *= 2;
  }
}

std::string WhereTimeWent::text(const core::Anatomy& whole, bool utf8) const {
  if (whole.steps <= 0 || whole.seconds <= 0) {
    return "";
  }
  const bool drawn = periods_.size() >= 3;
  std::string text = fmt::format(
      "where the time went: {} steps in {} s; half of the steps took at most {} ms, 99 % at most {} ms, the "
      "slowest {} ms\n",
      thousands(whole.steps), seconds_text(whole.seconds), ms(whole.p50), ms(whole.p99), ms(whole.slowest));
  text += fmt::format("  {:<16} {:>7} {:>9} {:>9} {:>9}{}", "", "share", "ms, half", "ms, 99 %", "computing",
                      drawn ? "  over the run" : "");
  double rest = 0;
  for (const core::PhaseTime& phase : whole.phases) {
    const double share = phase.seconds / whole.seconds;
    if (share < kShown) {
      rest += share;
      continue;
    }
    std::string line;
    if (drawn) {
      std::vector<double> values;
      for (const core::Anatomy& period : periods_) {
        values.push_back(period.seconds > 0 ? seconds_of(period.phases, phase.name) /
                                                  static_cast<double>(std::max<std::int64_t>(period.steps, 1))
                                            : -1);
      }
      line = "  " + sparkline(values, {.utf8 = utf8});
    }
    const double computing = phase.cpu_seconds < 0 || phase.seconds <= 0 ? -1 : phase.cpu_seconds / phase.seconds;
    text += fmt::format("\n  {:<16} {:>7} {:>9} {:>9} {:>9}{}", phase.name, percent(share), ms(phase.p50),
                        ms(phase.p99), percent(computing), line);
  }
  for (const core::PhaseTime& mark : whole.marks) {
    text +=
        fmt::format("\n  {:<16} {:>7}  (named by mark)", printable(mark.name), percent(mark.seconds / whole.seconds));
  }
  return rest > 0 ? text + fmt::format("\n  {:<16} {:>7}", "the rest", percent(rest)) : text;
}

}  // namespace stoker::observe
