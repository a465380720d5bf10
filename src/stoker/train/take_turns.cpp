// SPDX-License-Identifier: Apache-2.0
#include "stoker/train/take_turns.h"

#include <algorithm>

namespace stoker::train {
namespace {

constexpr std::size_t kFewestTurns = 2, kMostTurns = 9;

double three_of_four(std::vector<double> values) {
  const auto found = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) * 3 / 4);
  std::ranges::nth_element(values, found);
  return *found;
}

}  // namespace

std::vector<double> take_turns(std::size_t count, const std::function<double(std::size_t)>& time, double too_slow) {
  std::vector<std::vector<double>> seconds(count);
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < count; ++i) {
    const double first = time(i);
    if (first > too_slow) {
      seconds[i].push_back(first);
    } else {
      order.push_back(i);
    }
  }
  double spent = 0;
  for (std::size_t turn = 0; turn < kMostTurns && (turn < kFewestTurns || spent < kTurnsSeconds); ++turn) {
    for (const std::size_t i : order) {
      spent += seconds[i].emplace_back(time(i));
    }
    std::ranges::reverse(order);  // back and forth: so two neighbours need one switch per turn
  }
  std::vector<double> result;
  for (std::vector<double>& each : seconds) {
    result.push_back(three_of_four(std::move(each)));
  }
  return result;
}

}  // namespace stoker::train
