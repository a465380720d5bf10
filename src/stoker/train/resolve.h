// SPDX-License-Identifier: Apache-2.0
// Turns options and facts into a plan. resolve() is a pure function; measure() (train/measure.h) then replaces the
// performance values that nobody set. Both run before step 1; nothing changes later.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "stoker/core/plan_row.h"
#include "stoker/train/options.h"
#include "stoker/train/plan.h"

namespace stoker::train {

// Facts from the data, the model's recipe and the machine.
struct Facts {
  std::string task, task_reason;
  std::int64_t train_samples = 0;
  std::int64_t val_samples = 0;
  int cores = 1;               // that this process may use
  std::string device = "cpu";  // the best available one
  std::string device_reason;
  int ranks = 1;
  std::string ranks_reason;                // empty: they are the value of ranks=
  bool couples_samples = true;             // the model has batch norm: it cannot train on one sample
  std::vector<core::Option> task_options;  // options of the kind of task
  std::vector<core::PlanRow> recipe;       // the task's defaults that depend on model or data
};

// ConfigError if values contradict each other or the data. `precision`, `layout`, `threads` and `intra_op` get safe
// values that measure() may improve.
[[nodiscard]] Plan resolve(const Options& options, const Facts& facts);

// The defaults that are the same in every run, of the engine's options and the given ones. For values that are needed
// before there is a plan: val and seed define the validation split.
[[nodiscard]] Plan default_plan(const std::vector<core::Option>& task_options = {});

// Sets a value of a plan with its origin and reason.
void decide(Plan& plan, std::string_view key, std::string_view value, core::Origin origin, std::string reason);

// Whether samples of a forward pass depend on each other: batch norm, unless its statistics are frozen.
[[nodiscard]] bool couples_samples(const Plan& plan, const Facts& facts);

// After batch or microbatch have changed: sets tail=drop if batch norm could not train on the last forward pass, and
// tail is not set. ConfigError as resolve().
void choose_tail(Plan& plan, const Options& options, const Facts& facts);

// ConfigError if a plan that was made for other data cannot run on this data: a batch larger than the data, or a last
// batch of one sample with batch norm.
void check_repeatable(const Plan& plan, const Facts& facts);

// Samples of the smallest forward pass of an epoch: batches are split into even microbatches.
[[nodiscard]] std::int64_t smallest_pass(const Plan& plan, std::int64_t train_samples);

// Steps of one epoch, and of the whole run.
[[nodiscard]] std::int64_t steps_per_epoch(const Plan& plan, std::int64_t train_samples);
[[nodiscard]] std::int64_t total_steps(const Plan& plan, std::int64_t train_samples);

}  // namespace stoker::train
