// SPDX-License-Identifier: Apache-2.0
// time= as a budget: how many epochs end within it, so that the learning rate has come down when time is up. Called by
// job before step 1 with seconds that were measured on the run's own steps. Thread-safe: no state.
#pragma once

#include <cstdint>

#include "stoker/train/options.h"
#include "stoker/train/plan.h"

namespace stoker::train {

// Seconds on this machine, as the plan has precision, layout and threads.
struct EpochTime {
  double first = 0, later = 0;  // of training: the first epoch, which may decode what later ones find in memory
  double evaluation = 0;        // of the validation split, once; 0: there is none
  double save = 0;              // of one checkpoint
};

// Of time=; the rest is for the test split and for moments in which others keep the machine busy.
inline constexpr double kBudgetShare = 0.92;
// A run is at most so many times as long as the task's recipe has it: more epochs than that seldom learn more.
inline constexpr std::int64_t kMostTimes = 8;

// Whether time= decides how long the run is: it is set, and nobody asked for epochs= or steps=, which come first.
[[nodiscard]] bool has_time_budget(const Plan& plan, const Options& options);

// Epochs that fit, without a limit; less than 1: not even one does.
[[nodiscard]] double epochs_in_time(const Plan& plan, std::int64_t train_samples, const EpochTime& time);

// Puts the epochs that fit into the plan or, where not even one does, the steps, with the reason.
void fit_time(Plan& plan, std::int64_t train_samples, const EpochTime& time);

}  // namespace stoker::train
