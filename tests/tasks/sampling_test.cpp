// SPDX-License-Identifier: Apache-2.0
// The effect of sampling= on the tasks.
#include "stoker/tasks/sampling.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "stoker/base/error.h"

namespace stoker::tasks {
namespace {

TEST(Sampling, UniformIsTheSourcesOwnOrder) {
  const data::LabelList labels = data::LabelList::of(std::vector<std::int64_t>{0, 1, 1});
  EXPECT_EQ(training_order({}, labels, {}), nullptr);
}

TEST(Sampling, BalancedDrawsEveryClassAsOftenAndKeepsTheEpochsLength) {
  std::vector<std::int64_t> labels(1000, 2);
  labels[17] = 0;
  BatchRequest request;
  request.batch = 64;
  request.seed = 3;
  request.drop_tail = true;
  SamplingOptions balanced;
  balanced.sampling = "balanced";
  const auto order = training_order(balanced, data::LabelList::of(labels), request);
  ASSERT_NE(order, nullptr);
  EXPECT_EQ(order->samples(), 1000);
  EXPECT_EQ(order->steps_per_epoch(), 15);
  std::vector<std::int64_t> batch;
  std::int64_t of_class_0 = 0;
  for (std::int64_t step = 0; step < 15; ++step) {
    order->positions(0, step, batch);
    of_class_0 += std::ranges::count(batch, 17);
  }
  EXPECT_NEAR(static_cast<double>(of_class_0), 480, 60);  // of 960 draws
}

TEST(Sampling, OtherWordsAreRefused) {
  const core::OptionTable<SamplingOptions> table(sampling_options());
  SamplingOptions options;
  EXPECT_EQ(options.sampling, *core::find_option(table.options(), "sampling")->fallback.value);
  table.set(options, "sampling", "balanced");
  EXPECT_EQ(options.sampling, "balanced");
  EXPECT_THROW(table.set(options, "sampling", "random"), ConfigError);
}

TEST(Sampling, ARandomDrawHasNoOrderOfIndices) {
  SamplingOptions options;
  options.shuffle = false;
  EXPECT_NO_THROW(check_sampling(options));
  options.sampling = "balanced";
  EXPECT_THROW(check_sampling(options), ConfigError);
}

}  // namespace
}  // namespace stoker::tasks
