// SPDX-License-Identifier: Apache-2.0
#include "stoker/data/order/mixture.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <span>

#include "stoker/base/counter_rng.h"
#include "stoker/base/error.h"
#include "stoker/base/permutation.h"

namespace stoker::data {
namespace {

constexpr std::string_view kWhere = "data.mixture";

std::int64_t samples_of(const std::vector<MixtureSet>& sets) {
  std::int64_t samples = 0;
  for (std::size_t i = 0; i < sets.size(); ++i) {
    constexpr std::int64_t kMost = std::int64_t{1} << 48;
    if (sets[i].samples < 1 || sets[i].samples > kMost) {
      fail<ConfigError>(kWhere, "set {} has {} samples, expected 1 to 2^48; leave out an empty set", i,
                        sets[i].samples);
    }
    if (!(sets[i].weight > 0) || std::isinf(sets[i].weight)) {
      fail<ConfigError>(kWhere,
                        "the weight of set {} must be positive and finite, got {}; leave out a set that is not to"
                        " be drawn",
                        i, sets[i].weight);
    }
    samples += sets[i].samples;
  }
  if (sets.empty()) {
    fail<ConfigError>(kWhere, "a mixture needs at least one set");
  }
  return samples;
}

// Draws per epoch: as requested, minus a dropped tail, so that no set loses the samples of the tail.
std::int64_t draws_of(const MixtureOptions& options, std::int64_t samples) {
  const std::int64_t draws = options.draws == 0 ? samples : options.draws;
  if (draws < 1 || draws > BatchOrder::kMostDraws) {
    fail<ConfigError>(kWhere, "an epoch must have 1 to {} draws, got {}; set draws=N", BatchOrder::kMostDraws, draws);
  }
  const bool whole = options.drop_tail && options.batch > 0 && draws >= options.batch;
  return whole ? draws - draws % options.batch : draws;
}

// floor(number * share / all) without overflow, for 0 <= share <= all <= 2^31.
std::int64_t part(std::int64_t number, std::int64_t share, std::int64_t all) {
  return number / all * share + number % all * share / all;
}

}  // namespace

Mixture::Mixture(MixtureOptions options)
    : options_(std::move(options)),
      samples_(samples_of(options_.sets)),
      draws_(draws_of(options_, samples_)),
      batches_({.samples = draws_,
                .batch = options_.batch,
                .drop_tail = options_.drop_tail,
                .rank = options_.rank,
                .ranks = options_.ranks}) {
  constexpr double kParts = std::int64_t{1} << 30;  // parts of one draw, the unit of shares
  double largest = 0, sum = 0;
  for (const MixtureSet& set : options_.sets) {
    largest = std::max(largest, set.weight);
  }
  for (const MixtureSet& set : options_.sets) {
    sum += set.weight / largest;
  }
  begins_.push_back(0);
  for (std::size_t i = 0; i < options_.sets.size(); ++i) {
    const MixtureSet& set = options_.sets[i];
    begins_.push_back(begins_.back() + set.samples);
    const double share = set.weight / largest / sum;
    shares_.push_back(std::max<std::int64_t>(1, static_cast<std::int64_t>(std::floor(share * kParts))));
    seeds_.push_back(derived_seed(options_.seed, i));
  }
  seeds_.push_back(derived_seed(options_.seed, options_.sets.size()));
  rests_.resize(shares_.size());
  std::partial_sum(shares_.rbegin(), shares_.rend(), rests_.rbegin());
}

// The first set gets its share of all draws, the second its share of the rest, and so on. Each draw increases exactly
// one of the counts by 1.
void Mixture::counts(std::int64_t draws, std::vector<std::int64_t>& out) const {
  out.resize(shares_.size());
  for (std::size_t set = 0; set < shares_.size(); ++set) {
    out[set] = part(draws, shares_[set], rests_[set]);
    draws -= out[set];
  }
}

std::int64_t Mixture::sample_of(std::size_t set, std::int64_t draw) const {
  const std::int64_t samples = options_.sets[set].samples;
  const Permutation order(seeds_[set], static_cast<std::uint32_t>(draw / samples), static_cast<std::uint64_t>(samples));
  return begins_[set] + static_cast<std::int64_t>(order(static_cast<std::uint64_t>(draw % samples)));
}

// Appends draws first ... last - 1 of a block to out. Earlier draws of the block are only counted.
void Mixture::append(std::int64_t block, std::int64_t first, std::int64_t last, std::vector<std::int64_t>& out) const {
  std::vector<std::int64_t> next, after;
  counts(block * kBlock, next);
  counts((block + 1) * kBlock, after);
  std::array<std::size_t, kBlock> sets;
  auto* end = sets.data();
  for (std::size_t set = 0; set < next.size(); ++set) {
    end = std::fill_n(end, after[set] - next[set], set);
  }
  const auto high = static_cast<std::uint64_t>(block) >> 32;
  const Permutation order(seeds_.back() ^ high, static_cast<std::uint32_t>(block), kBlock);
  std::array<std::int64_t, kBlock> places;
  order.fill(0, std::span(places).first(static_cast<std::size_t>(last)));
  for (std::int64_t i = 0; i < last; ++i) {
    const std::size_t set = sets[static_cast<std::size_t>(places[static_cast<std::size_t>(i)])];
    if (i >= first) {
      out.push_back(sample_of(set, next[set]));
    }
    ++next[set];
  }
}

void Mixture::positions(std::int64_t epoch, std::int64_t step, std::vector<std::int64_t>& out) const {
  const auto [first, last] = batches_.slice(step);
  out.clear();
  const std::int64_t end = epoch * draws_ + last;
  for (std::int64_t at = epoch * draws_ + first; at < end;) {
    const std::int64_t offset = at % kBlock, count = std::min(kBlock - offset, end - at);
    append(at / kBlock, offset, offset + count, out);
    at += count;
  }
}

std::size_t Mixture::set_of(std::int64_t position) const {
  if (position < 0 || position >= samples_) {
    fail<ConfigError>(kWhere, "position {} is out of range; the mixture has {} positions", position, samples_);
  }
  return static_cast<std::size_t>(std::ranges::upper_bound(begins_, position) - begins_.begin()) - 1;
}

}  // namespace stoker::data
