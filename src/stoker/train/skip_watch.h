// SPDX-License-Identifier: Apache-2.0
// Detects skipped steps, a few steps late on a GPU so that nothing waits for it. The part of the loop that counts them.
// One thread.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "stoker/train/loop.h"

namespace stoker::train {

// What to do about a loss that is not finite.
inline constexpr const char* kFiniteRemedy = "lower lr, set clip=1 or precision=fp32, or check";

class SkipWatch {
 public:
  // limit: this many skipped steps in a row are survived. lag: steps that may still be running.
  SkipWatch(const LoopParts& parts, std::int64_t limit, std::size_t lag);

  // Emits a FaultSurvived for each skipped step. Error beyond the limit, with the names of the first samples. Writes
  // the loss to the run's progress. Time spent waiting for the device counts as Phase::kDeviceWait.
  void watch(std::int64_t step, std::shared_ptr<const core::PendingScalars> scalars, std::vector<std::int64_t> samples);
  // Called before anything that waits for the device anyway: a checkpoint never hides a fault.
  void finish() { check_down_to(0); }

  // "3 steps in a row were not finite; ...", with samples, if the newest step was skipped; else empty.
  [[nodiscard]] const std::string& last_fault() const { return last_fault_; }
  // The names of at most 8 samples of a batch.
  [[nodiscard]] std::string first_names(const std::vector<std::int64_t>& samples) const;

 private:
  struct Seen {
    std::int64_t step;
    std::shared_ptr<const core::PendingScalars> scalars;
    std::vector<std::int64_t> samples;
  };

  void check_down_to(std::size_t left);
  void check(const Seen& seen, const core::Scalars& scalars);

  const LoopParts& parts_;
  std::int64_t limit_;
  std::size_t lag_, column_;
  std::deque<Seen> seen_;
  std::string last_fault_;
};

}  // namespace stoker::train
