// SPDX-License-Identifier: Apache-2.0
// Properties of every order. The batches of two epochs have one hash for every number of ranks (slices joined),
// straight and with the order made again at twenty random steps. Copies of a sample have different draw numbers.
#include "stoker/data/order/batch_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <random>
#include <set>
#include <span>
#include <utility>

#include "stoker/data/order/bucket_plan.h"
#include "stoker/data/order/mixture.h"
#include "stoker/data/order/packing_plan.h"
#include "stoker/data/order/sampler.h"
#include "stoker/data/order/weighted_sampler.h"

namespace stoker::data {
namespace {

using Make = std::function<std::unique_ptr<BatchOrder>(int rank, int ranks)>;

struct Named {
  const char* name;
  Make make;
  bool repeats;
};

std::vector<std::int64_t> some_lengths(std::size_t count) {
  std::mt19937 random(3);
  std::vector<std::int64_t> lengths(count);
  for (std::int64_t& length : lengths) {
    length = static_cast<std::int64_t>(random() % 200 + 1);
  }
  return lengths;
}

const Named kOrders[] = {
    {"uniform",
     [](int rank, int ranks) {
       return std::make_unique<Sampler>(
           SamplerOptions{.samples = 1003, .batch = 24, .seed = 7, .rank = rank, .ranks = ranks});
     },
     false},
    {"weighted",
     [](int rank, int ranks) {
       WeightedSamplerOptions options{.draws = 1003, .batch = 24, .seed = 7, .rank = rank, .ranks = ranks};
       options.weights = {0.3, 4, 0, 1, 1, 7.5, 2};
       return std::make_unique<WeightedSampler>(options);
     },
     true},
    {"mixture",
     [](int rank, int ranks) {
       MixtureOptions options{.draws = 1003, .batch = 24, .seed = 7, .rank = rank, .ranks = ranks};
       options.sets = {{10, 1}, {2000, 3}, {77, 0.4}};
       return std::make_unique<Mixture>(options);
     },
     true},
    {"buckets",
     [](int rank, int ranks) {
       return std::make_unique<BucketPlan>(some_lengths(1003),
                                           BucketOptions{.tokens = 2000, .seed = 7, .rank = rank, .ranks = ranks});
     },
     false},
    {"packed",
     [](int rank, int ranks) {
       const PackingPlan plan(some_lengths(1003), {.length = 256, .seed = 7});
       return std::make_unique<Sampler>(
           SamplerOptions{.samples = plan.sequences(), .batch = 12, .seed = 7, .rank = rank, .ranks = ranks});
     },
     false},
};

// FNV-1a over positions, draws and the ends of batches. The orders are made again before each step in `restarts`.
std::uint64_t hash(const Named& order, int ranks, const std::set<std::int64_t>& restarts) {
  std::uint64_t value = 0xCBF29CE484222325;
  const auto add = [&](std::int64_t number) { value = (value ^ static_cast<std::uint64_t>(number)) * 0x100000001B3; };
  std::vector<std::unique_ptr<BatchOrder>> each;
  const auto make = [&] {
    each.clear();
    for (int rank = 0; rank < ranks; ++rank) {
      each.push_back(order.make(rank, ranks));
    }
  };
  make();
  std::vector<std::int64_t> part;
  const std::int64_t steps = each.front()->steps_per_epoch();
  for (std::int64_t at = 0; at < 2 * steps; ++at) {
    if (restarts.contains(at)) {
      make();
    }
    std::int64_t rows = 0;
    for (const auto& mine : each) {
      mine->positions(at / steps, at % steps, part);
      const std::int64_t draw = mine->first_draw(at % steps).value_or(-1);
      for (std::size_t i = 0; i < part.size(); ++i) {
        add(part[i]);
        add(draw < 0 ? -1 : draw + static_cast<std::int64_t>(i));
      }
      rows += static_cast<std::int64_t>(part.size());
    }
    EXPECT_EQ(rows, each.front()->global_size(at / steps, at % steps)) << order.name;
    add(-2);
  }
  return value;
}

TEST(BatchOrder, OneHashForRanksAndResumes) {
  for (const Named& order : kOrders) {
    const std::uint64_t expected = hash(order, 1, {});
    std::mt19937 random(5);
    const auto steps = static_cast<std::uint32_t>(order.make(0, 1)->steps_per_epoch());
    std::set<std::int64_t> restarts;
    while (restarts.size() < 20) {
      restarts.insert(random() % (2 * steps));
    }
    for (const int ranks : {1, 2, 4}) {
      EXPECT_EQ(hash(order, ranks, {}), expected) << order.name << ", " << ranks << " ranks";
      EXPECT_EQ(hash(order, ranks, restarts), expected) << order.name << ", " << ranks << " ranks, resumed";
    }
  }
}

TEST(BatchOrder, TwoEpochsDifferAndCopiesOfASampleHaveNumbersOfTheirOwn) {
  for (const Named& order : kOrders) {
    const auto made = order.make(1, 3);
    std::vector<std::int64_t> epochs[2], part;
    std::set<std::pair<std::int64_t, std::int64_t>> seen;
    std::size_t rows = 0;
    for (std::int64_t step = 0; step < made->steps_per_epoch(); ++step) {
      for (const std::int64_t epoch : {0, 1}) {
        made->positions(epoch, step, part);
        epochs[epoch].insert(epochs[epoch].end(), part.begin(), part.end());
      }
      ASSERT_EQ(made->first_draw(step).has_value(), order.repeats) << order.name;
      for (std::size_t i = 0; i < part.size(); ++i, ++rows) {
        const std::int64_t draw = order.repeats ? *made->first_draw(step) + static_cast<std::int64_t>(i) : 0;
        ASSERT_LT(draw, BatchOrder::kMostDraws);
        seen.emplace(part[i], draw);
      }
    }
    EXPECT_NE(epochs[0], epochs[1]) << order.name;
    EXPECT_EQ(seen.size(), rows) << order.name;
  }
}

// Memory and startup time do not grow with the number of samples. An order that visits, stores or shuffles all samples
// would be too slow for this test.
TEST(BatchOrder, ABillionSamplesStartAnywhere) {
  constexpr std::int64_t kSamples = 1'000'000'000, kBatch = 512;
  const Sampler uniform({.samples = kSamples, .batch = kBatch, .seed = 1});
  MixtureOptions sets{.batch = kBatch, .seed = 1};
  sets.sets = {{kSamples / 2, 1}, {kSamples / 2, 3}};
  const Mixture mixture(sets);
  WeightedSamplerOptions weighted{.draws = kSamples, .batch = kBatch, .seed = 1};
  weighted.weights = {1, 2};
  const WeightedSampler draws(weighted);
  for (const BatchOrder* order : {static_cast<const BatchOrder*>(&uniform), static_cast<const BatchOrder*>(&mixture),
                                  static_cast<const BatchOrder*>(&draws)}) {
    std::vector<std::int64_t> early, late;
    order->positions(0, 1'000'000, early);
    order->positions(1000, 1'900'000, late);
    EXPECT_EQ(early.size(), static_cast<std::size_t>(kBatch));
    EXPECT_NE(early, late);
    EXPECT_LT(std::ranges::max(late), order->samples());
  }
}

}  // namespace
}  // namespace stoker::data
