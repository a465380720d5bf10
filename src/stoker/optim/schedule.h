// SPDX-License-Identifier: Apache-2.0
// The learning rate as a pure function of the step: nothing to save, resume is asking for another step.
// Called once a step by the loop (job hands it in) and by reports that draw it. Thread-safe: no state.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace stoker::optim {

// In the order of known_schedules().
enum class ScheduleKind { kConstant, kStep, kCosine, kLinear, kOneCycle };

struct ScheduleOptions {
  ScheduleKind kind = ScheduleKind::kCosine;
  double lr = 0.1;                // the peak
  std::int64_t warmup_steps = 0;  // lr grows as (step + 1) / warmup_steps; one_cycle: length of its rise if not 0
  std::int64_t total_steps = 1;   // of the run, warm-up included; later steps keep the last one's value
  double min_factor = 0;          // cosine, linear: what is left of lr at total_steps
  std::int64_t step_size = 30;    // step: lr is multiplied by gamma every so many steps after the warm-up
  double gamma = 0.1;             // step
  double rise_fraction = 0.3;     // one_cycle: share of the steps that rise (PyTorch's pct_start)
  double start_div = 25;          // one_cycle: begins at lr / start_div
  double final_div = 1e4;         // one_cycle: ends at lr / start_div / final_div
};

// Learning rate of step 0, 1, ..., after the formulas of torch.optim.lr_scheduler's StepLR, CosineAnnealingLR, LinearLR
// and OneCycleLR (cosine, two phases), each beginning after the warm-up.
[[nodiscard]] double lr_at(const ScheduleOptions& options, std::int64_t step);

// "constant", "step", "cosine", "linear", "one_cycle".
[[nodiscard]] const std::vector<std::string>& known_schedules();
// ConfigError for an unknown name.
[[nodiscard]] ScheduleKind schedule_kind(const std::string& name);
// ConfigError for a value out of range, naming it.
void check(const ScheduleOptions& options);

}  // namespace stoker::optim
