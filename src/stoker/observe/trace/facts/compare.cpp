// SPDX-License-Identifier: Apache-2.0
#include "stoker/observe/trace/facts/compare.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <tuple>

namespace stoker::observe::trace {
namespace {

constexpr double kOfItself = 0.02, kOfStep = 1e-4;

using Key = std::pair<std::string, std::string>;

// Collects both sides under one key.
class Sides {
 public:
  Sides(double steps_before, double steps_after) : steps_{steps_before, steps_after} {}

  void add(bool after, Key key, std::int64_t time, std::int64_t times) {
    Change& change = changes_[std::move(key)];
    (after ? change.after : change.before) += static_cast<double>(time) / steps_[after ? 1 : 0];
    (after ? change.times_after : change.times_before) += static_cast<double>(times) / steps_[after ? 1 : 0];
  }

  [[nodiscard]] std::vector<Change> sorted(double whole) && {
    std::vector<Change> result;
    for (auto& [key, change] : changes_) {
      std::tie(change.name, change.shapes) = key;
      change.word = word(change, whole);
      result.push_back(std::move(change));
    }
    std::ranges::stable_sort(result, std::ranges::greater(),
                             [](const Change& each) { return std::abs(each.difference()); });
    return result;
  }

 private:
  static Change::Word word(const Change& change, double whole) {
    if (change.times_before == 0) {
      return Change::Word::kNew;
    }
    if (change.times_after == 0) {
      return Change::Word::kGone;
    }
    const double size = std::abs(change.difference());
    if (size <= kOfItself * change.before || size <= kOfStep * whole) {
      return Change::Word::kSame;
    }
    return change.difference() < 0 ? Change::Word::kFaster : Change::Word::kSlower;
  }

  std::array<double, 2> steps_;
  std::map<Key, Change> changes_;
};

std::int64_t window_of(const TraceFacts& facts) { return length(facts.window); }

}  // namespace

std::string_view change_name(Change::Word word) {
  constexpr std::array<std::string_view, 5> kNames = {"faster", "slower", "same", "new", "gone"};
  return kNames[static_cast<std::size_t>(word)];
}

Comparison compare(const TraceFacts& before, const TraceFacts& after) {
  Comparison result;
  result.per_step = !before.steps.empty() && !after.steps.empty();
  result.steps_before = result.per_step ? static_cast<double>(before.steps.size()) : 1;
  result.steps_after = result.per_step ? static_cast<double>(after.steps.size()) : 1;
  result.operators_by_host = before.devices.empty() && after.devices.empty();
  const double whole = std::min(static_cast<double>(window_of(before)) / result.steps_before,
                                static_cast<double>(window_of(after)) / result.steps_after);
  Sides kernels(result.steps_before, result.steps_after), operators = kernels, idle = kernels;
  for (const bool second : {false, true}) {
    const TraceFacts& facts = second ? after : before;
    for (const WorkSum& each : facts.work) {
      kernels.add(second, {each.name, ""}, each.total, each.times);
    }
    for (const OperatorSum& each : facts.operators) {
      operators.add(second, {each.name, each.shapes}, result.operators_by_host ? each.host_self : each.device_self,
                    each.times);
    }
    const auto add_idle = [&](const IdleTime& time) {
      for (const IdleName& each : time.names) {
        idle.add(second, {std::string(doing_name(each.doing)), ""}, each.time, each.times);
      }
    };
    for (const DeviceFactsOfTrace& each : facts.devices) {
      add_idle(each.idle);
    }
    if (facts.host_idle) {
      add_idle(*facts.host_idle);
    }
  }
  result.kernels = std::move(kernels).sorted(whole);
  result.operators = std::move(operators).sorted(whole);
  result.idle = std::move(idle).sorted(whole);
  return result;
}

}  // namespace stoker::observe::trace
