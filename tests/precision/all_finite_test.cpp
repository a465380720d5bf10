// SPDX-License-Identifier: Apache-2.0
// Every kind of number at every place that matters, beside at::isfinite.
#include "stoker/precision/all_finite.h"

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
  constexpr std::int64_t kLarge = 300'000;  // several threads' worth, and no multiple of anything
  for (const std::int64_t count : {std::int64_t{1}, std::int64_t{7}, std::int64_t{64}, kLarge + 3}) {
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

TEST(AllFinite, TakesWhatHasNoGaps) {
  const at::Tensor grid = at::ones({2, 3, 4, 5});
  EXPECT_TRUE(is_plain(grid));
  EXPECT_TRUE(is_plain(grid.to(at::MemoryFormat::ChannelsLast)));
  EXPECT_FALSE(is_plain(grid.slice(3, 0, 4)));        // gaps
  EXPECT_FALSE(is_plain(at::ones({1}).expand({4})));  // overlap
  EXPECT_FALSE(is_plain(grid.to(at::kBFloat16)));
}

}  // namespace
}  // namespace stoker::precision
