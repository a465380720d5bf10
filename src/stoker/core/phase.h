// SPDX-License-Identifier: Apache-2.0
// The part of a step that a thread is in, so that what it allocates, and later the time it spends, can be booked to it.
// Set by train::Step, the loop and the sources; read by device/host_allocator. One value per thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace stoker::core {

enum class Phase : std::uint8_t {
  kOther,       // before training, and threads that set nothing
  kInput,       // making a batch, and copying it to the device
  kForward,     // segments and loss
  kBackward,    // from the loss to the gradients
  kUpdate,      // norm of the gradients, optimizer, averages
  kEvaluation,  // a split without gradients, and examples for people
  kCheckpoint,
};
inline constexpr std::size_t kPhases = 7;

// "forward", for reports.
[[nodiscard]] constexpr std::string_view phase_name(Phase phase) {
  constexpr std::array<std::string_view, kPhases> kNames = {"other",  "input",      "forward",   "backward",
                                                            "update", "evaluation", "checkpoint"};
  return kNames[static_cast<std::size_t>(phase)];
}

// Of this thread.
inline thread_local Phase t_phase = Phase::kOther;

// The phase of this thread for a scope; then the one before.
class PhaseScope {
 public:
  explicit PhaseScope(Phase phase) : before_(t_phase) { t_phase = phase; }
  ~PhaseScope() { t_phase = before_; }
  PhaseScope(const PhaseScope&) = delete;
  PhaseScope& operator=(const PhaseScope&) = delete;

 private:
  Phase before_;
};

}  // namespace stoker::core
