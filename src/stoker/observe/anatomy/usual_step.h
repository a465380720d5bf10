// SPDX-License-Identifier: Apache-2.0
// How long a step and its phases usually take: medians of the last steps, so that a lasting change becomes the usual.
// Used by StepAnatomy. One thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "stoker/core/phase_list.h"

namespace stoker::observe {

using PhaseSeconds = std::array<double, core::kPhases>;

class UsualStep {
 public:
  static constexpr std::size_t kSteps = 64;  // that the medians are of, at most
  static constexpr std::int64_t kEach = 32;  // steps until they are brought up to date; more often at first

  // seconds: of the step, without evaluations and checkpoints.
  void add(const PhaseSeconds& phases, double seconds);
  [[nodiscard]] double seconds() const { return seconds_; }
  [[nodiscard]] const PhaseSeconds& phases() const { return phases_; }

 private:
  void update();

  std::array<PhaseSeconds, kSteps> last_phases_{};  // rings
  std::array<double, kSteps> last_seconds_{};
  std::int64_t count_ = 0;
  PhaseSeconds phases_{};
  double seconds_ = 0;
};

}  // namespace stoker::observe
