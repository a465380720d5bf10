// SPDX-License-Identifier: Apache-2.0
// Tells what each rank of a run does: core::RankTimes now and then, and of all steps at the end, as events of rank 0.
// Made by Run with several ranks; used on the loop's thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "stoker/core/communicator.h"
#include "stoker/core/events.h"
#include "stoker/train/step.h"

namespace stoker::job {

class RankWatch {
 public:
  // A collective call. All outlive it.
  RankWatch(core::Communicator& ranks, const train::Step& step, core::EventEmitter& events);

  // After each step. seconds: since the loop began.
  void step_done(std::int64_t step, double seconds);
  // Tells of all steps, and who was slowest.
  void finish(std::int64_t step);

 private:
  void tell_period(std::int64_t step);
  [[nodiscard]] core::RankTimes since(const core::RankTimes& from, std::int64_t step) const;

  const bool tells_;
  const train::Step& step_;
  core::EventEmitter& events_;
  std::vector<std::string> hosts_;
  core::RankTimes begun_, told_;
  double told_at_ = 0;
};

}  // namespace stoker::job
