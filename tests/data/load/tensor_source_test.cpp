// SPDX-License-Identifier: Apache-2.0
// Every row comes once per epoch with its own fields, in the order of the sampler. A run with a later start equals the
// later part of the full run.
#include "stoker/data/load/tensor_source.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <gtest/gtest.h>

#include <set>

#include "stoker/base/error.h"
#include "stoker/data/order/bucket_plan.h"
#include "stoker/data/order/weighted_sampler.h"
#include "support/no_batch_lost.h"

namespace stoker::data {
namespace {

TensorSourceOptions rows_of(std::int64_t rows, std::int64_t batch) {
  TensorSourceOptions options;
  options.fields = {{"x", at::arange(rows).to(at::kFloat).mul(2).unsqueeze(1)}, {"y", at::arange(rows).add(100)}};
  options.batch = batch;
  options.seed = 5;
  return options;
}

TEST(TensorSource, HandsOutEveryRowOnceAnEpochWithItsOwnFields) {
  TensorSource source(rows_of(10, 4));
  std::vector<std::int64_t> first_epoch;
  for (int epoch = 0; epoch < 2; ++epoch) {
    std::set<std::int64_t> seen;
    std::vector<std::int64_t> order, sizes;
    while (const auto batch = source.next()) {
      sizes.push_back(batch->size());
      EXPECT_EQ(batch->position(), (core::Position{epoch, static_cast<std::int64_t>(sizes.size()) - 1}));
      for (std::int64_t i = 0; i < batch->size(); ++i) {
        const std::int64_t row = batch->indices()[static_cast<std::size_t>(i)];
        EXPECT_EQ((*batch)["x"][i][0].item<float>(), static_cast<float>(2 * row));
        EXPECT_EQ((*batch)["y"][i].item<std::int64_t>(), 100 + row);
        seen.insert(row);
        order.push_back(row);
      }
    }
    EXPECT_EQ(sizes, (std::vector<std::int64_t>{4, 4, 2}));
    EXPECT_EQ(seen.size(), 10U);
    epoch == 0 ? first_epoch = order : order;
    EXPECT_EQ(order == first_epoch, epoch == 0);  // another order each epoch
  }
}

TEST(TensorSource, ARanksBatchKnowsItsPlaceInTheGlobalBatch) {
  for (int rank = 0; rank < 3; ++rank) {
    TensorSourceOptions options = rows_of(10, 4);
    options.rank = rank;
    options.ranks = 3;
    TensorSource source(options);
    std::vector<std::int64_t> places, sizes;
    while (const auto batch = source.next()) {
      places.push_back(batch->first_row());
      sizes.push_back(batch->global_size());
    }
    EXPECT_EQ(places, (std::vector<std::int64_t>{rank * 4 / 3, rank * 4 / 3, rank * 2 / 3}));
    EXPECT_EQ(sizes, (std::vector<std::int64_t>{4, 4, 2}));
  }
}

TEST(TensorSource, ALaterStartIsTheLaterPart) {
  TensorSource whole(rows_of(10, 3));
  (void)whole.next();
  (void)whole.next();
  TensorSourceOptions options = rows_of(10, 3);
  options.start = {0, 2};
  TensorSource later(options);
  for (int i = 0; i < 5; ++i) {
    const auto a = whole.next(), b = later.next();
    ASSERT_EQ(a.has_value(), b.has_value());
    if (a) {
      EXPECT_EQ(a->indices(), b->indices());
    }
  }
}

TEST(TensorSource, TakesAnyOrderAndResumesInIt) {
  std::vector<std::shared_ptr<const BatchOrder>> orders;
  WeightedSamplerOptions weighted{.batch = 4, .seed = 5};
  weighted.weights = {1, 0, 3, 1, 1, 1, 9, 1, 1, 1};
  orders.push_back(std::make_shared<WeightedSampler>(weighted));
  const std::vector<std::int64_t> lengths{5, 1, 9, 9, 2, 3, 4, 4, 7, 8};
  orders.push_back(std::make_shared<BucketPlan>(lengths, BucketOptions{.tokens = 12, .seed = 5}));
  for (const auto& order : orders) {
    TensorSourceOptions options = rows_of(10, 1);
    options.order = order;
    TensorSource whole(options);
    std::vector<std::int64_t> expected;
    for (int epoch = 0; epoch < 2; ++epoch) {
      for (std::int64_t step = 0; step < order->steps_per_epoch(); ++step) {
        options.start = {epoch, step};
        const auto batch = whole.next(), resumed = TensorSource(options).next();
        ASSERT_TRUE(batch && resumed);
        order->positions(epoch, step, expected);
        EXPECT_EQ(batch->indices(), expected);
        EXPECT_EQ(resumed->indices(), expected);
        EXPECT_EQ((*batch)["y"][0].item<std::int64_t>(), 100 + expected[0]);
      }
      EXPECT_FALSE(whole.next());
    }
    options.fields = {{"x", at::arange(9)}};
    EXPECT_THROW(TensorSource{options}, ConfigError);
  }
}

TEST(TensorSource, NamesRowsByTheirDataSetAndRefusesWhatDoesNotFit) {
  TensorSourceOptions options = rows_of(3, 3);
  options.shuffle = false;
  options.indices = {7, 5, 9};
  EXPECT_EQ(TensorSource(options).next()->indices(), (std::vector<std::int64_t>{7, 5, 9}));
  options.indices = {7, 5};
  EXPECT_THROW(TensorSource{options}, ConfigError);
  options.indices.clear();
  options.fields.emplace_back("z", at::arange(4));
  EXPECT_THROW(TensorSource{options}, ConfigError);
  options.fields.clear();
  EXPECT_THROW(TensorSource{options}, ConfigError);
}

TEST(TensorSource, LosesNothingWithoutMemory) {
  const TensorSourceOptions options = rows_of(10, 4);
  const auto make = [&] { return std::make_unique<TensorSource>(options); };
  testing::loses_nothing_at_tensors(make, 5);
  testing::loses_nothing_at_new(make, 5, testing::Whose::kMine);
}

}  // namespace
}  // namespace stoker::data
