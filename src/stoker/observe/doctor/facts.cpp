// SPDX-License-Identifier: Apache-2.0
#include "stoker/observe/doctor/facts.h"

#include <array>

#include "stoker/base/fmt.h"
#include "stoker/base/thousands.h"

namespace stoker::observe::doctor {

std::string_view source_name(Source source) {
  constexpr std::array<std::string_view, 4> kNames = {"run", "trace", "script", "process"};
  return kNames[static_cast<std::size_t>(source)];
}

double Period::part(std::string_view name) const {
  const auto found = parts.find(name);
  return found == parts.end() ? 0 : found->second.seconds;
}

double Period::paused() const { return part("evaluation") + part("checkpoint") + part("loader_start"); }

std::optional<double> Facts::figure(std::string_view name) const {
  const auto found = figures.find(name);
  return found == figures.end() ? std::nullopt : std::optional(found->second.value);
}

std::string_view Facts::word(std::string_view name) const {
  const auto found = words.find(name);
  return found == words.end() ? std::string_view() : found->second;
}

double Facts::seconds() const {
  double sum = 0;
  for (const Period& each : periods) {
    sum += each.seconds;
  }
  return sum;
}

std::int64_t Facts::steps() const {
  std::int64_t sum = 0;
  for (const Period& each : periods) {
    sum += each.steps;
  }
  return sum;
}

std::optional<double> Facts::share(std::string_view part) const {
  double spent = 0;
  bool known = false;
  for (const Period& each : periods) {
    spent += each.part(part);
    known |= !each.parts.empty();
  }
  const double all = seconds();
  return known && all > 0 ? std::optional(spent / all) : std::nullopt;
}

std::string Facts::window() const {
  if (periods.empty()) {
    return "no steps";
  }
  if (steps() == 0) {
    return fmt::format("{:.0f} s", seconds());
  }
  return fmt::format("steps {} to {}", thousands(periods.front().last_step - periods.front().steps + 1),
                     thousands(periods.back().last_step));
}

bool set_by_hand(const Facts& facts, std::string_view option) {
  const std::string_view origin = facts.word(fmt::format("origin.plan.{}", option));
  return origin == "command line" || origin == "config";
}

}  // namespace stoker::observe::doctor
