// SPDX-License-Identifier: Apache-2.0
#include "stoker/observe/slow_steps.h"

#include <algorithm>

#include "stoker/base/fmt.h"

namespace stoker::observe {
namespace {

constexpr double kSlower = 3;        // times the fastest; other causes (longer texts, a hot CPU) stay below
constexpr double kMoreSwitches = 2;  // times the rate of the fastest window, ...
constexpr double kFewSwitches = 20;  // ... plus this number per second, normal on an idle machine
constexpr int kLooks = 2;            // consecutive windows: 4 s
constexpr int kSaid = kLooks + 1;    // reported once

}  // namespace

void SlowSteps::on(const core::Event& event) {
  if (const auto* started = std::get_if<core::RunStarted>(&event)) {
    step_ = started->first_step;
    seen_ = switches_();
  }
  const auto* fed = std::get_if<core::Fed>(&event);
  if (fed == nullptr) {
    return;
  }
  const std::int64_t steps = fed->step - step_, switches = switches_() - seen_;
  step_ = fed->step;
  seen_ += switches;
  const auto stage = std::ranges::find(fed->consumer, "step", &core::StageFigures::name);
  if (steps > 0 && fed->seconds > 0 && stage != fed->consumer.end() && slow_looks_ < kSaid) {
    look({stage->seconds / static_cast<double>(steps), static_cast<double>(switches) / fed->seconds});
  }
}

void SlowSteps::look(const Pace& now) {
  if (best_.step_seconds == 0 || now.step_seconds < best_.step_seconds) {
    best_ = now;
  }
  const bool slow =
      now.step_seconds > kSlower * best_.step_seconds && now.switches > kMoreSwitches * best_.switches + kFewSwitches;
  slow_looks_ = slow ? slow_looks_ + 1 : 0;
  if (slow_looks_ < kLooks) {
    return;
  }
  slow_looks_ = kSaid;
  findings_.emit(core::Finding{fmt::format(
      "steps take {:.1f} times as long as before ({:.3g} ms instead of {:.3g} ms), and the kernel preempts this run "
      "{:.0f} times per second instead of {:.0f}: other programs use its cores; {}",
      now.step_seconds / best_.step_seconds, now.step_seconds * 1e3, best_.step_seconds * 1e3, now.switches,
      best_.switches,
      intra_op_ > 1 ? fmt::format("stop them, or train with intra_op=1 instead of {}", intra_op_) : "stop them")});
}

}  // namespace stoker::observe
