// SPDX-License-Identifier: Apache-2.0
// Tries one change after the other: speeds with and without it, in turns, beside what was kept before. Used by
// try_cures and apply_cures. One thread.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "stoker/study/doctor/cures.h"

namespace stoker::study {

// Thrown through the trials when a signal ended them.
struct Stopped {};

class Trier {
 public:
  // Steps per second of a short run with these changes. DataError if it tells nothing, with the reason.
  using Speed = std::function<double(const std::vector<Cure>& changes)>;
  using Say = std::function<void(const std::string&)>;

  // pairs: at most, of a run with the change and one without; three are enough if all differ by more than 10 %.
  Trier(int pairs, Speed speed, Say say) : pairs_(pairs), speed_(std::move(speed)), say_(std::move(say)) {}

  // What pays is part of the trials that follow.
  [[nodiscard]] Tried try_one(const Cure& cure);

 private:
  Ratio gain_of(const Cure& cure);

  int pairs_;
  Speed speed_;
  Say say_;
  std::vector<Cure> kept_;
};

}  // namespace stoker::study
