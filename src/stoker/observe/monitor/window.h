// SPDX-License-Identifier: Apache-2.0
// Small values of the monitor: a list of named figures, the spread of samples in a window, and the growth of a counter.
// What is missing stays missing. Plain values.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "stoker/core/observed.h"

namespace stoker::observe {

class Figures {
 public:
  // Nothing for a value that is missing.
  void put(std::string name, std::optional<double> value) {
    if (value) {
      list_.push_back({std::move(name), *value});
    }
  }
  std::vector<core::Figure> take() { return std::exchange(list_, {}); }

 private:
  std::vector<core::Figure> list_;
};

// Samples of one figure.
class Spread {
 public:
  void add(std::optional<double> value) {
    if (value) {
      lowest_ = count_ == 0 ? *value : std::min(lowest_, *value);
      highest_ = count_ == 0 ? *value : std::max(highest_, *value);
      sum_ += *value;
      ++count_;
    }
  }
  [[nodiscard]] std::optional<double> mean() const { return known(sum_ / static_cast<double>(std::max(count_, 1))); }
  [[nodiscard]] std::optional<double> lowest() const { return known(lowest_); }
  [[nodiscard]] std::optional<double> highest() const { return known(highest_); }

 private:
  [[nodiscard]] std::optional<double> known(double value) const {
    return count_ == 0 ? std::nullopt : std::optional(value);
  }
  int count_ = 0;
  double sum_ = 0, lowest_ = 0, highest_ = 0;
};

// What a counter grew per second; none if one of the readings is missing, or if it was set back.
inline std::optional<double> rate(std::optional<double> before, std::optional<double> now, double seconds) {
  return before && now && *now >= *before && seconds > 0 ? std::optional((*now - *before) / seconds) : std::nullopt;
}

}  // namespace stoker::observe
