// SPDX-License-Identifier: Apache-2.0
// The parts of a step, with their names for reports of time and of memory. Plain values.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace stoker::core {

enum class Phase : std::uint8_t {
  kOther,       // before training, threads that set nothing, and what no other phase names
  kInput,       // waiting for a batch, or making it
  kForward,     // segments
  kBackward,    // from the loss to the gradients
  kUpdate,      // optimizer
  kEvaluation,  // a split without gradients, and examples for people
  kCheckpoint,
  // Parts of the phases above. Memory is booked to the whole: see memory_phase().
  kCopy,        // of kInput: handing over the copy of a batch on the device
  kLoss,        // of kForward
  kClip,        // of kUpdate: norm, finite check and scale of the gradients
  kAverage,     // of kUpdate: EMA
  kLogging,     // of kOther: events, and the watches of a run
  kDeviceWait,  // of kOther: the host waits until the device has finished earlier steps
  kExchange,    // of kOther: waiting for other ranks, and sums that nothing hides
};
inline constexpr std::size_t kMemoryPhases = 7;
inline constexpr std::size_t kPhases = 14;

[[nodiscard]] constexpr std::size_t index_of(Phase phase) { return static_cast<std::size_t>(phase); }

// The phase that memory is booked to: one of the first kMemoryPhases.
[[nodiscard]] constexpr Phase memory_phase(Phase phase) {
  switch (phase) {
    case Phase::kCopy: return Phase::kInput;
    case Phase::kLoss: return Phase::kForward;
    case Phase::kClip:
    case Phase::kAverage: return Phase::kUpdate;
    case Phase::kLogging:
    case Phase::kDeviceWait:
    case Phase::kExchange: return Phase::kOther;
    default: return phase;
  }
}

// "forward", for reports of memory.
[[nodiscard]] constexpr std::string_view phase_name(Phase phase) {
  constexpr std::array<std::string_view, kMemoryPhases> kNames = {"other",  "input",      "forward",   "backward",
                                                                  "update", "evaluation", "checkpoint"};
  return kNames[index_of(memory_phase(phase))];
}

// "unscale and clip", for reports of time.
[[nodiscard]] constexpr std::string_view time_name(Phase phase) {
  constexpr std::array<std::string_view, kPhases> kNames = {
      "other", "fetch", "forward",          "backward", "optimizer", "evaluation",  "checkpoint",
      "copy",  "loss",  "unscale and clip", "EMA",      "logging",   "device wait", "communication"};
  return kNames[index_of(phase)];
}

// In the order in which a step goes through them.
inline constexpr std::array<Phase, kPhases> kPhaseOrder = {
    Phase::kInput,      Phase::kCopy,       Phase::kForward,    Phase::kLoss,    Phase::kBackward,
    Phase::kExchange,   Phase::kClip,       Phase::kUpdate,     Phase::kAverage, Phase::kLogging,
    Phase::kDeviceWait, Phase::kCheckpoint, Phase::kEvaluation, Phase::kOther};

}  // namespace stoker::core
