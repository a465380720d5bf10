// SPDX-License-Identifier: Apache-2.0
#include "stoker/memory/leak_watch.h"

#include <algorithm>
#include <cmath>

namespace stoker::memory {
namespace {

constexpr double kSignificant = 4;    // standard deviations
constexpr double kInterval = 1.96;    // 95 %
constexpr double kClearRise = 4;      // times the range of what is left without the slope
constexpr std::size_t kFirstAge = 2;  // in steps: what is younger may still be in use

constexpr std::size_t kRecent = 16;  // steps that must add to what stays, too

// Pairs of values of one stretch.
struct Pairs {
  std::vector<double> slopes;  // sorted
  double rises = 0;            // less falls
  double variance = 0;         // of rises if there is no trend; not reduced for ties, which is on the safe side
};

template <typename Values>
Pairs pairs_of(const Values& values) {
  Pairs result;
  for (std::size_t from = 0, to = 0; from < values.size(); from = to) {
    for (to = from; to < values.size() && values[to].stretch == values[from].stretch; ++to) {
      for (std::size_t i = from; i < to; ++i) {
        const double change = values[to].bytes - values[i].bytes;
        result.rises += change > 0 ? 1 : change < 0 ? -1 : 0;
        result.slopes.push_back(change / static_cast<double>(values[to].step - values[i].step));
      }
    }
    const auto n = static_cast<double>(to - from);
    result.variance += n * (n - 1) * (2 * n + 5) / 18;
  }
  std::ranges::sort(result.slopes);
  return result;
}

double at(const std::vector<double>& sorted, double place) {
  const double last = static_cast<double>(sorted.size()) - 1;
  return sorted[static_cast<std::size_t>(std::clamp(std::round(place), 0.0, last))];
}
double median(const std::vector<double>& sorted) { return at(sorted, (static_cast<double>(sorted.size()) - 1) / 2); }

double z_of(const Pairs& pairs) {
  return pairs.variance > 0 && pairs.rises > 0 ? (pairs.rises - 1) / std::sqrt(pairs.variance) : 0;
}

// What is left of values without the slope, around the mean of each stretch.
template <typename Values>
std::vector<double> residuals_of(const Values& values, double slope) {
  std::vector<double> left;
  for (std::size_t from = 0, to = 0; from < values.size(); from = to) {
    double mean = 0;
    for (to = from; to < values.size() && values[to].stretch == values[from].stretch; ++to) {
      left.push_back(values[to].bytes - slope * static_cast<double>(values[to].step - values[from].step));
      mean += left.back();
    }
    mean /= static_cast<double>(to - from);
    std::for_each(left.begin() + static_cast<std::ptrdiff_t>(from), left.end(), [&](double& each) { each -= mean; });
  }
  return left;
}

}  // namespace

std::optional<Growth> LeakWatch::add(std::int64_t step, std::int64_t bytes) {
  ++seen_;
  if (bytes < 0 || seen_ <= options_.warm_up || ignore_ > 0) {
    ignore_ = std::max<std::int64_t>(0, ignore_ - 1);
    return std::nullopt;
  }
  values_.push_back({step, stretch_, static_cast<double>(bytes)});
  if (static_cast<std::int64_t>(values_.size()) > options_.window) {
    values_.pop_front();
  }
  const bool full = static_cast<std::int64_t>(values_.size()) == options_.window;
  return full && seen_ % options_.look_every == 0 ? look() : std::nullopt;
}

void LeakWatch::disturbed() {
  ++stretch_;
  ignore_ = options_.settle;
}

std::optional<Growth> LeakWatch::look() const {
  if (values_.front().stretch == values_.back().stretch && values_.front().bytes >= values_.back().bytes) {
    return std::nullopt;  // the common case, without the work
  }
  const Pairs all = pairs_of(values_);
  if (z_of(all) < kSignificant) {
    return std::nullopt;
  }
  const double slope = median(all.slopes);
  const std::vector<double> residuals = residuals_of(values_, slope);
  const auto [lowest, highest] = std::ranges::minmax(residuals);
  const auto middle = values_.begin() + options_.window / 2;
  const Pairs older = pairs_of(std::vector<Value>(values_.begin(), middle));
  const Pairs newer = pairs_of(std::vector<Value>(middle, values_.end()));
  const double rise = slope * static_cast<double>(options_.window);
  if (slope < options_.least || rise < kClearRise * (highest - lowest) || z_of(newer) < kInterval ||
      median(newer.slopes) < std::max(median(older.slopes), slope) / 2) {
    return std::nullopt;
  }
  const auto count = static_cast<double>(all.slopes.size());
  const double spread = kInterval * std::sqrt(all.variance);
  return Growth{.bytes = slope,
                .low = at(all.slopes, (count - spread) / 2 - 1),
                .high = at(all.slopes, (count + spread) / 2),
                .first = values_.front().step,
                .last = values_.back().step};
}

std::optional<LeakOrigin> origin_of(const Growth& growth, const device::BytesByAge& ages) {
  const auto span = static_cast<std::size_t>(
      std::min(growth.last - growth.first, device::kHostAges - 2 - static_cast<std::int64_t>(kFirstAge)));
  device::BytesByPhase held{};
  double all = 0, older = 0, recent = 0;
  for (std::size_t age = kFirstAge; age < kFirstAge + span; ++age) {
    for (std::size_t phase = 0; phase < core::kMemoryPhases; ++phase) {
      const auto bytes = ages[age][phase];
      held[phase] += bytes;
      all += static_cast<double>(bytes);
      older += age >= kFirstAge + span / 2 ? static_cast<double>(bytes) : 0;
      recent += age < kFirstAge + kRecent ? static_cast<double>(bytes) : 0;
    }
  }
  if (all < growth.bytes * static_cast<double>(span) / 2 || older < all / 4 ||
      recent < growth.bytes * static_cast<double>(std::min(span, kRecent)) / 2) {
    return std::nullopt;
  }
  const auto most = static_cast<std::size_t>(std::ranges::max_element(held) - held.begin());
  LeakOrigin origin{.phase = static_cast<core::Phase>(most)};
  for (std::size_t age = 0; age < ages.size() - 1; ++age) {
    origin.oldest = ages[age][most] > 0 ? static_cast<std::int64_t>(age) : origin.oldest;
  }
  return origin;
}

}  // namespace stoker::memory
