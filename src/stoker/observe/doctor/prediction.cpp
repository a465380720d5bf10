// SPDX-License-Identifier: Apache-2.0
#include "stoker/observe/doctor/prediction.h"

#include <algorithm>
#include <cstdint>
#include <random>

namespace stoker::observe::doctor {
namespace {

constexpr int kDraws = 400;
constexpr double kTail = 0.1;            // on each side of 80 %
constexpr double kMostSaved = 0.98;      // of a period; something is always left
constexpr std::uint32_t kSeed = 0x5EED;  // the same records give the same words

struct Sums {
  double seconds = 0, saved = 0;
  [[nodiscard]] double speedup(double reach) const {
    const double left = seconds - std::min(saved * reach, kMostSaved * seconds);
    return left > 0 ? seconds / left : 1;
  }
};

}  // namespace

Prediction predict(const std::vector<Period>& periods, const Saving& saved, Reach reach) {
  std::vector<Sums> each;
  Sums all;
  for (const Period& period : periods) {
    const double less = std::clamp(saved(period), 0.0, kMostSaved * period.seconds);
    each.push_back({period.seconds, less});
    all.seconds += period.seconds;
    all.saved += less;
  }
  if (all.seconds <= 0) {
    return {};
  }
  std::minstd_rand random(kSeed);
  std::vector<Sums> draws(kDraws);
  for (Sums& draw : draws) {
    for (std::size_t i = 0; i < each.size(); ++i) {
      const Sums& one = each[random() % each.size()];
      draw.seconds += one.seconds;
      draw.saved += one.saved;
    }
  }
  const auto at = [&](double quantile, double share) {
    std::vector<double> speedups;
    for (const Sums& draw : draws) {
      speedups.push_back(draw.speedup(share));
    }
    const auto place = speedups.begin() + static_cast<std::ptrdiff_t>(quantile * (kDraws - 1));
    std::ranges::nth_element(speedups, place);
    return *place;
  };
  Prediction prediction{.speedup = all.speedup((reach.low + reach.high) / 2)};
  prediction.low = std::min(at(kTail, reach.low), prediction.speedup);
  prediction.high = std::max(at(1 - kTail, reach.high), prediction.speedup);
  return prediction;
}

}  // namespace stoker::observe::doctor
