// SPDX-License-Identifier: Apache-2.0
// Every kind of number at every place that matters, against at::isfinite.
#include "stoker/precision/all_finite.h"

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>

namespace stoker::precision {
namespace {

TEST(AllFinite, EqualsIsfinite) {
  using Limits = std::numeric_limits<float>;
  const std::array values{Limits::infinity(), -Limits::infinity(), Limits::quiet_NaN(),  -Limits::quiet_NaN(),
                          Limits::max(),      Limits::lowest(),    Limits::denorm_min(), -0.0F};
  constexpr std::int64_t kLarge = 300'000;
  for (const std::int64_t count :
       {std::int64_t{1}, std::int64_t{7}, std::int64_t{16}, std::int64_t{17}, std::int64_t{64}, kLarge + 3}) {
    at::Tensor tensor = at::ones({count});
    float* x = tensor.mutable_data_ptr<float>();
    EXPECT_TRUE(all_finite(tensor));
    for (const std::int64_t at : {std::int64_t{0}, count / 2, count - 1}) {
      for (const float value : values) {
        x[at] = value;
        EXPECT_EQ(all_finite(tensor), at::isfinite(tensor).all().item<bool>())
            << value << " at " << at << " of " << count;
      }
      x[at] = 1;
    }
  }
  EXPECT_TRUE(all_finite(at::empty({0})));
}

TEST(AllFinite, TakesWhatHasNoGapsAndNoSecondThreadIsQuickerAt) {
  const at::Tensor grid = at::ones({2, 3, 4, 5});
  EXPECT_TRUE(may_check_alone(grid));
  EXPECT_TRUE(may_check_alone(grid.to(at::MemoryFormat::ChannelsLast)));
  EXPECT_FALSE(may_check_alone(grid.slice(3, 0, 4)));        // gaps
  EXPECT_FALSE(may_check_alone(at::ones({1}).expand({4})));  // overlap
  EXPECT_FALSE(may_check_alone(grid.to(at::kBFloat16)));
  EXPECT_FALSE(may_check_alone(at::Tensor()));
  const int before = at::get_num_threads();
  const at::Tensor large = at::ones({1 << 20});
  at::set_num_threads(2);
  EXPECT_FALSE(may_check_alone(large));
  at::set_num_threads(1);
  EXPECT_TRUE(may_check_alone(large));
  at::set_num_threads(before);
}

}  // namespace
}  // namespace stoker::precision
