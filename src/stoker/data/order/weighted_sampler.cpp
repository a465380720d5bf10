// SPDX-License-Identifier: Apache-2.0
#include "stoker/data/order/weighted_sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_map>

#include "stoker/base/counter_rng.h"
#include "stoker/base/error.h"

namespace stoker::data {
namespace {

constexpr std::string_view kWhere = "data.weighted_sampler";
constexpr std::uint64_t kColumn = std::uint64_t{1} << 32;  // units per column, and the mean per sample

void check_weights(const std::vector<double>& weights) {
  if (weights.empty() || weights.size() > (std::uint64_t{1} << 31)) {
    fail<ConfigError>(kWhere, "the number of weights must be 1 to 2^31, got {}", weights.size());
  }
  const auto wrong = std::ranges::find_if(weights, [](double weight) { return !(weight >= 0) || std::isinf(weight); });
  if (wrong != weights.end()) {
    fail<ConfigError>(kWhere, "weights must be finite and not negative, but sample {} has {}", wrong - weights.begin(),
                      *wrong);
  }
}

// The share of each weight in weights.size() * 2^32 units, rounded down. The largest weight gets the remainder, at most
// about one unit per sample. Uses single divisions, products and sums of doubles, which IEEE 754 rounds the same
// everywhere. The sum is compensated (Neumaier 1974), since 10^9 roundings would be some units per sample.
std::vector<std::uint64_t> shares(const std::vector<double>& weights) {
  check_weights(weights);
  const auto largest = std::ranges::max_element(weights);
  if (*largest == 0) {
    fail<ConfigError>(kWhere, "all {} weights are 0; at least one must be positive", weights.size());
  }
  double sum = 0, rounded_off = 0;
  for (const double weight : weights) {
    const double part = weight / *largest;  // so that no sum overflows
    const double next = sum + part;
    rounded_off += sum >= part ? (sum - next) + part : (part - next) + sum;
    sum = next;
  }
  sum += rounded_off;
  const std::uint64_t all = weights.size() * kColumn;
  std::vector<std::uint64_t> units(weights.size());
  std::uint64_t given = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const double share = weights[i] / *largest / sum;
    const double scaled = share * static_cast<double>(all);
    units[i] = weights[i] > 0 ? std::max<std::uint64_t>(1, static_cast<std::uint64_t>(scaled)) : 0;
    given += units[i];
  }
  units[static_cast<std::size_t>(largest - weights.begin())] += all - given;  // modulo 2^64: may be negative
  return units;
}

EqualBatches::Options batches_of(const WeightedSamplerOptions& options) {
  const auto samples = static_cast<std::int64_t>(options.weights.size());
  const std::int64_t draws = options.draws == 0 ? samples : options.draws;
  if (draws < 0 || draws > BatchOrder::kMostDraws) {
    fail<ConfigError>(kWhere, "an epoch must have 1 to {} draws, got {}", BatchOrder::kMostDraws, draws);
  }
  return {.samples = draws,
          .batch = options.batch,
          .drop_tail = options.drop_tail,
          .rank = options.rank,
          .ranks = options.ranks};
}

}  // namespace

// Fills the columns as in Vose, "A linear algorithm for generating random numbers with a given distribution" (1991): a
// large sample fills the rest of the column of a small sample.
WeightedSampler::WeightedSampler(const WeightedSamplerOptions& options)
    : seed_(options.seed), batches_(batches_of(options)) {
  std::vector<std::uint64_t> units = shares(options.weights);
  columns_.resize(units.size());
  std::vector<std::uint32_t> small, large;
  for (std::uint32_t i = 0; i < units.size(); ++i) {
    (units[i] < kColumn ? small : large).push_back(i);
  }
  while (!small.empty()) {  // the mean is one column, so there is a large one while there is a small one
    const std::uint32_t lower = small.back(), upper = large.back();
    small.pop_back();
    columns_[lower] = {static_cast<std::uint32_t>(units[lower]), upper};
    units[upper] -= kColumn - units[lower];
    if (units[upper] < kColumn) {
      large.pop_back();
      small.push_back(upper);
    }
  }
  for (const std::uint32_t full : large) {
    columns_[full] = {0, full};
  }
}

std::int64_t WeightedSampler::draw(std::int64_t epoch, std::int64_t number) const {
  CounterRng random(seed_, static_cast<std::uint32_t>(epoch), static_cast<std::uint64_t>(number), RandomOp::kDraw);
  const std::uint64_t high = random.next(), low = random.next(), count = columns_.size();
  const std::uint64_t column = (high * count + ((low * count) >> 32)) >> 32;  // 64 random bits times count / 2^64
  const Column& at = columns_[column];
  return static_cast<std::int64_t>(random.next() < at.own ? column : at.other);
}

void WeightedSampler::positions(std::int64_t epoch, std::int64_t step, std::vector<std::int64_t>& out) const {
  const auto [first, last] = batches_.slice(step);
  out.resize(static_cast<std::size_t>(last - first));
  for (std::int64_t number = first; number < last; ++number) {
    out[static_cast<std::size_t>(number - first)] = draw(epoch, number);
  }
}

std::vector<std::uint64_t> WeightedSampler::units() const {
  std::vector<std::uint64_t> units(columns_.size());
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    units[i] += columns_[i].own;
    units[columns_[i].other] += kColumn - columns_[i].own;
  }
  return units;
}

std::vector<double> balanced_weights(const LabelList& labels) {
  std::unordered_map<std::int64_t, std::int64_t> counts;
  labels.each_run([&](std::int64_t, std::int64_t count, std::int64_t label) { counts[label] += count; });
  std::vector<double> weights;
  weights.reserve(static_cast<std::size_t>(labels.size()));
  labels.each_run([&](std::int64_t, std::int64_t count, std::int64_t label) {
    weights.insert(weights.end(), static_cast<std::size_t>(count), 1.0 / static_cast<double>(counts.at(label)));
  });
  return weights;
}

}  // namespace stoker::data
