// SPDX-License-Identifier: Apache-2.0
#include "stoker/io/report/anatomy_log.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "stoker/base/fmt.h"
#include "stoker/base/json_fields.h"

namespace stoker::io {
namespace {

using Json = nlohmann::ordered_json;

// Calls use(object) for each object of a list.
template <typename Use>
void each_at(const Json& json, const char* key, const Use& use) {
  const auto list = json.find(key);
  if (list == json.end() || !list->is_array()) {
    return;
  }
  for (const Json& each : *list) {
    if (each.is_object()) {
      use(each);
    }
  }
}

// The entry with that name, made if there is room; null: there is none.
PhaseLog* entry(std::vector<PhaseLog>& all, const std::string& name) {
  const auto found = std::ranges::find(all, name, &PhaseLog::name);
  if (found != all.end()) {
    return &*found;
  }
  return all.size() < AnatomyLog::kMostPhases ? &all.emplace_back(PhaseLog{.name = name}) : nullptr;
}

void add_known(double& sum, double more) {
  if (more >= 0) {
    sum = std::max(sum, 0.0) + more;
  }
}

void merge(PeriodLog& first, const PeriodLog& second) {
  first.step = second.step;
  first.steps += second.steps;
  first.seconds += second.seconds;
  first.phases.resize(std::max(first.phases.size(), second.phases.size()));
  for (std::size_t i = 0; i < second.phases.size(); ++i) {
    first.phases[i] += second.phases[i];
  }
}

// Five digits; null: unknown.
Json figure(double value) {
  return value < 0 || !std::isfinite(value) ? Json() : Json(std::strtod(fmt::format("{:.5g}", value).c_str(), nullptr));
}

}  // namespace

void AnatomyLog::add(const Json& event) {
  const std::string kind = text_at(event, "event");
  if (kind == "anatomy") {
    event.value("whole", Json()) == true ? add_whole(event) : add_period(event);
  } else if (kind == "slow_step") {
    add_slow(event);
  }
}

void AnatomyLog::add_period(const Json& event) {
  const double seconds = real_at(event, "seconds").value_or(0);
  if (!(seconds > 0)) {
    return;
  }
  PeriodLog period{
      .step = integer_at(event, "step"), .steps = integer_at(event, "steps"), .seconds = seconds, .phases = {}};
  each_at(event, "phases", [&](const Json& each) {
    if (PhaseLog* const phase = entry(phases_, text_at(each, "name"))) {
      const double spent = real_at(each, "seconds").value_or(0);
      phase->seconds += spent;
      add_known(phase->cpu, real_at(each, "cpu_seconds").value_or(-1));
      add_known(phase->device, real_at(each, "device_seconds").value_or(-1));
      const auto place = static_cast<std::size_t>(phase - phases_.data());
      period.phases.resize(std::max(period.phases.size(), place + 1));
      period.phases[place] += spent;
    }
  });
  each_at(event, "marks", [&](const Json& each) {
    if (PhaseLog* const mark = entry(marks_, text_at(each, "name"))) {
      mark->seconds += real_at(each, "seconds").value_or(0);
    }
  });
  steps_ += period.steps;
  seconds_ += seconds;
  if (!periods_.empty() && (in_last_ < per_place_ || period.steps == 0)) {  // the end of a session may have no step
    merge(periods_.back(), period);
    ++in_last_;
    return;
  }
  periods_.push_back(std::move(period));
  in_last_ = 1;
  if (periods_.size() > kMostPeriods) {
    halve();
  }
}

void AnatomyLog::halve() {
  const std::size_t half = (periods_.size() + 1) / 2;
  for (std::size_t i = 0; i < half; ++i) {
    if (2 * i + 1 < periods_.size()) {
      merge(periods_[2 * i], periods_[2 * i + 1]);
    }
    std::swap(periods_[i], periods_[2 * i]);
  }
  periods_.resize(half);
  per_place_ *= 2;
}

void AnatomyLog::add_whole(const Json& event) {
  p50_ = real_at(event, "p50").value_or(-1);
  p99_ = real_at(event, "p99").value_or(-1);
  slowest_ = std::max(slowest_, real_at(event, "slowest").value_or(-1));
  each_at(event, "phases", [&](const Json& each) {
    if (PhaseLog* const phase = entry(phases_, text_at(each, "name"))) {
      phase->p50 = real_at(each, "p50").value_or(-1);
      phase->p99 = real_at(each, "p99").value_or(-1);
    }
  });
}

void AnatomyLog::add_slow(const Json& event) {
  ++slow_steps_;
  slow_.push_back({.step = integer_at(event, "step"),
                   .seconds = real_at(event, "seconds").value_or(0),
                   .usual = real_at(event, "usual_seconds").value_or(0),
                   .phase = text_at(event, "phase"),
                   .cause = text_at(event, "cause")});
  std::ranges::stable_sort(slow_, std::ranges::greater(),
                           [](const SlowStepLog& each) { return each.seconds - each.usual; });
  slow_.resize(std::min(slow_.size(), kMostSlow));
}

Json AnatomyLog::json() const {
  if (periods_.empty()) {
    return nullptr;
  }
  Json phases = Json::array(), marks = Json::array(), x = Json::array(), steps = Json::array(), by = Json::array(),
       slow = Json::array();
  for (std::size_t i = 0; i < phases_.size(); ++i) {
    const PhaseLog& each = phases_[i];
    phases.push_back({{"name", each.name},
                      {"seconds", figure(each.seconds)},
                      {"cpu", figure(each.cpu)},
                      {"device", figure(each.device)},
                      {"p50", figure(each.p50)},
                      {"p99", figure(each.p99)}});
    Json line = Json::array();
    for (const PeriodLog& period : periods_) {
      line.push_back(figure(i < period.phases.size() ? period.phases[i] : 0));
    }
    by.push_back(std::move(line));
  }
  for (const PhaseLog& each : marks_) {
    marks.push_back({each.name, figure(each.seconds)});
  }
  for (const PeriodLog& period : periods_) {
    x.push_back(period.step);
    steps.push_back(period.steps);
  }
  for (const SlowStepLog& each : slow_) {
    slow.push_back({each.step, figure(each.seconds), figure(each.usual), each.phase, each.cause});
  }
  return {{"seconds", figure(seconds_)},
          {"steps", steps_},
          {"p50", figure(p50_)},
          {"p99", figure(p99_)},
          {"slowest", figure(slowest_)},
          {"phases", std::move(phases)},
          {"marks", std::move(marks)},
          {"periods", {{"x", std::move(x)}, {"steps", std::move(steps)}, {"by", std::move(by)}}},
          {"slow", std::move(slow)},
          {"slow_steps", slow_steps_}};
}

}  // namespace stoker::io
