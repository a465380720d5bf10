// SPDX-License-Identifier: Apache-2.0
// Uses time= as a budget: computes how many epochs fit, so that the learning rate has decayed when the time is up.
// Called by job before step 1 with seconds that were measured on the run's own steps. Thread-safe: no state.
#pragma once

#include <cstdint>

#include "stoker/train/options.h"
#include "stoker/train/plan.h"

namespace stoker::train {

// Seconds on this machine, with the plan's precision, layout and threads.
struct EpochTime {
  double first = 0, later = 0;  // of training: the first epoch may decode images that later ones find in memory
  double evaluation = 0;        // of one evaluation of the validation split; 0: no validation split
  double save = 0;              // of one checkpoint
};

// Share of time=; the rest is for the test split and for moments when other programs keep the machine busy.
inline constexpr double kBudgetShare = 0.92;
// A run has at most this many times the epochs of the task's recipe: more epochs rarely improve the result.
inline constexpr std::int64_t kMostTimes = 8;

// Whether time= decides the length of the run: it is set, and epochs= and steps= are not, since they have priority.
[[nodiscard]] bool has_time_budget(const Plan& plan, const Options& options);

// Epochs that fit, without a limit; less than 1: not even one epoch fits.
[[nodiscard]] double epochs_in_time(const Plan& plan, std::int64_t train_samples, const EpochTime& time);

// Sets the epochs that fit in the plan or, if not even one fits, the steps, with the reason.
void fit_time(Plan& plan, std::int64_t train_samples, const EpochTime& time);

}  // namespace stoker::train
