// SPDX-License-Identifier: Apache-2.0
// The learning rate as a pure function of the step: there is no state to save on resume. Called once per step by the
// loop (through job) and by reports that draw it. Thread-safe: no state.
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
  std::int64_t total_steps = 1;   // of the run, including warm-up; later steps keep the last value
  double min_factor = 0;          // cosine, linear: fraction of lr at total_steps
  std::int64_t step_size = 30;    // step: number of steps, after the warm-up, between multiplications of lr by gamma
  double gamma = 0.1;             // step
  double rise_fraction = 0.3;     // one_cycle: share of the rising steps (PyTorch's pct_start)
  double start_div = 25;          // one_cycle: begins at lr / start_div
  double final_div = 1e4;         // one_cycle: ends at lr / start_div / final_div
};

// Learning rate of step 0, 1, ..., with the formulas of StepLR, CosineAnnealingLR, LinearLR and OneCycleLR (cosine, two
// phases) of torch.optim.lr_scheduler, each starting after the warm-up.
[[nodiscard]] double lr_at(const ScheduleOptions& options, std::int64_t step);

// "constant", "step", "cosine", "linear", "one_cycle".
[[nodiscard]] const std::vector<std::string>& known_schedules();
// ConfigError for an unknown name.
[[nodiscard]] ScheduleKind schedule_kind(const std::string& name);
// ConfigError with the name of a value out of range.
void check(const ScheduleOptions& options);

}  // namespace stoker::optim
