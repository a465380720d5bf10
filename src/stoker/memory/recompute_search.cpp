// SPDX-License-Identifier: Apache-2.0
#include "stoker/memory/recompute_search.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "stoker/base/fmt.h"

namespace stoker::memory {
namespace {

constexpr std::int64_t kUnits = 16384;
constexpr double kNever = std::numeric_limits<double>::infinity();
// Of what recomputation can save at most: added to the estimate after a pass that failed without telling its bytes.
constexpr double kBump = 0.125;

RecomputeSet everything(const std::vector<SegmentCost>& costs) { return RecomputeSet(costs.size(), true); }

// A knapsack: seconds[k] is the least time with which the segments so far keep k units. Walks along the segments, as
// each one limits what those before it may keep.
class Knapsack {
 public:
  Knapsack(std::int64_t all_saved, std::int64_t most)
      : unit_(std::max<std::int64_t>(1, (all_saved + kUnits - 1) / kUnits)), most_(most), seconds_{0} {}

  // False: not even what cannot be recomputed away fits.
  bool add(const SegmentCost& cost) {
    outputs_ += cost.output_bytes;
    const std::int64_t room = most_ - outputs_ - cost.saved_bytes;
    if (room < 0) {
      return false;
    }
    seconds_.resize(std::min(seconds_.size(), static_cast<std::size_t>(room / unit_) + 1));
    const auto units = static_cast<std::size_t>((cost.saved_bytes + unit_ - 1) / unit_);
    std::vector<double> next(seconds_.size() + units, kNever);
    std::vector<bool>& kept = kept_.emplace_back(next.size(), false);
    for (std::size_t k = 0; k < seconds_.size(); ++k) {
      next[k] = seconds_[k] + cost.seconds;
    }
    for (std::size_t k = 0; k < seconds_.size(); ++k) {
      if (seconds_[k] <= next[k + units]) {
        next[k + units] = seconds_[k];
        kept[k + units] = seconds_[k] < kNever;
      }
    }
    units_.push_back(units);
    seconds_ = std::move(next);
    return true;
  }

  [[nodiscard]] RecomputeSet best() const {
    const double least = *std::ranges::min_element(seconds_);
    std::size_t k = seconds_.size() - 1;
    while (seconds_[k] > least) {  // of equal times, the one that keeps most
      --k;
    }
    RecomputeSet set(kept_.size(), true);
    for (std::size_t i = kept_.size(); i-- > 0;) {
      if (kept_[i][k]) {
        set[i] = false;
        k -= units_[i];
      }
    }
    return set;
  }

 private:
  std::int64_t unit_, most_, outputs_ = 0;
  std::vector<double> seconds_;
  std::vector<std::vector<bool>> kept_;  // for each segment and k: whether the segment is kept
  std::vector<std::size_t> units_;
};

}  // namespace

std::int64_t activation_peak(const std::vector<SegmentCost>& costs, const RecomputeSet& set) {
  std::int64_t kept = 0, peak = 0;
  for (std::size_t i = 0; i < costs.size(); ++i) {
    kept += costs[i].output_bytes;
    peak = std::max(peak, kept + costs[i].saved_bytes);
    kept += set[i] ? 0 : costs[i].saved_bytes;
  }
  return peak;
}

RecomputeSet least_recomputation(const std::vector<SegmentCost>& costs, std::int64_t most) {
  std::int64_t all_saved = 0;
  for (const SegmentCost& each : costs) {
    all_saved += each.saved_bytes;
  }
  Knapsack knapsack(all_saved, most);
  for (const SegmentCost& each : costs) {
    if (!knapsack.add(each)) {
      return everything(costs);
    }
  }
  return knapsack.best();
}

double added_seconds(const std::vector<SegmentCost>& costs, const RecomputeSet& set) {
  double seconds = 0;
  for (std::size_t i = 0; i < costs.size(); ++i) {
    seconds += set[i] ? costs[i].seconds : 0;
  }
  return seconds;
}

std::string recompute_text(const std::vector<SegmentCost>& costs, const RecomputeSet& set) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < costs.size(); ++i) {
    if (set[i]) {
      names.push_back(costs[i].name);
    }
  }
  return names.empty() ? "none" : names.size() == costs.size() ? "all" : fmt::format("{}", fmt::join(names, ","));
}

RecomputeFound find_recomputation(const std::vector<SegmentCost>& costs, const RecomputeProber& prober,
                                  const RecomputeSearch& search) {
  const RecomputeSet all = everything(costs), none(costs.size(), false);
  const std::int64_t without = activation_peak(costs, none);
  const auto aim = static_cast<std::int64_t>((1 - search.margin) * static_cast<double>(search.limit));
  const double begin = search.now();
  const auto bump = static_cast<std::int64_t>(kBump * static_cast<double>(without - activation_peak(costs, all))) + 1;
  RecomputeFound found;
  found.set = all;
  std::int64_t others = search.others;
  std::set<RecomputeSet> tried = {none};
  while (found.probes < search.probes && !(found.probe.fits && search.now() - begin > search.seconds)) {
    const bool last = found.probes + 1 == search.probes || search.now() - begin > search.seconds;
    const RecomputeSet set = last && !found.probe.fits ? all : least_recomputation(costs, aim - others);
    if (tried.contains(set) && (found.probe.fits || set == all)) {
      break;
    }
    if (tried.contains(set)) {
      others += bump;
      continue;
    }
    tried.insert(set);
    const RecomputeProbe probe = prober(set);
    ++found.probes;
    const std::int64_t peak = activation_peak(costs, set);
    if (probe.fits && (!found.probe.fits || added_seconds(costs, set) < added_seconds(costs, found.set))) {
      found.set = set;
      found.probe = probe;
    }
    others = probe.bytes >= 0 ? probe.bytes - peak : std::max(others, search.limit - peak) + bump;
  }
  found.kept_bytes = std::max(found.probe.fits && found.probe.bytes >= 0
                                  ? found.probe.bytes + without - activation_peak(costs, found.set)
                                  : others + without,
                              search.limit);
  return found;
}

RecomputeTrade trade_of(const std::vector<SegmentCost>& costs, const RecomputeFound& found) {
  RecomputeTrade trade;
  trade.less = std::max<std::int64_t>(0, found.kept_bytes - found.probe.bytes);
  const double added = added_seconds(costs, found.set);
  trade.slower = added > 0 ? added / std::max(found.probe.seconds - added, added) : 0;
  trade.poor = static_cast<double>(trade.less) < 0.5 * trade.slower * static_cast<double>(found.kept_bytes);
  return trade;
}

}  // namespace stoker::memory
