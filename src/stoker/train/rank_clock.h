// SPDX-License-Identifier: Apache-2.0
// What the ranks tell each other of their time, with the message of each step: each rank the time from its message
// before to this one, and what of it was no work of its own. Sums over all steps, by rank. Without a book of the thread
// (core::t_book) what a rank waited for data is unknown. Used by RankExchange; one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "stoker/core/observed.h"
#include "stoker/core/phase_book.h"
#include "stoker/device/kernel_file.h"

namespace stoker::train {

class RankClock {
 public:
  static constexpr std::int64_t kFields = 6;  // that a rank tells, float64

  // On the thread that uses it.
  explicit RankClock(int ranks);

  // The exchange at the end of a step begins: its own work, then it waits.
  void begin();
  // This rank is about to wait for the others. fields: kFields values for them.
  void arrive(double* fields);
  // What a rank told, for each rank, then heard_all().
  void heard(int rank, const double* fields);
  void heard_all();
  // The exchange has ended.
  void end();

  // Since the first step; without hosts and buckets.
  [[nodiscard]] const core::RankTimes& sums() const { return sums_; }

 private:
  // The times of this thread since its book was opened.
  struct Reading {
    double data = 0, saving = 0, evaluating = 0, exchanging = 0;
  };
  [[nodiscard]] static Reading read_book();
  [[nodiscard]] static double now();
  [[nodiscard]] double delayed();

  device::KernelFile schedule_;  // of this thread
  core::RankTimes sums_;
  std::vector<double> waited_before_, waited_after_;  // in this step, by rank
  Reading last_;
  double span_ = 0;                                     // of this step: the mean over ranks
  double begun_ = 0, arrived_ = -1;                     // of the newest exchange; -1: there was none
  double in_exchange_ = 0, waited_ = 0, delayed_ = -1;  // of the exchange before
  double delayed_at_end_ = -1;
};

}  // namespace stoker::train
