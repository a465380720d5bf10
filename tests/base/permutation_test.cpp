// SPDX-License-Identifier: Apache-2.0
// The order of samples: a bijection for every size, different per seed and epoch, and without visible structure.
#include "stoker/base/permutation.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <vector>

#include "stoker/base/counter_rng.h"
#include "stoker/base/error.h"

namespace stoker {
namespace {

TEST(Philox, KnownVectors) {  // from Random123's kat_vectors
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, {0, 0}), (PhiloxBlock{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox4x32({~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}),
            (PhiloxBlock{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (PhiloxBlock{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Permutation, SeveralAtATimeAreTheSame) {
  for (const std::uint64_t size : {std::uint64_t{1}, std::uint64_t{2}, std::uint64_t{7}, std::uint64_t{50'000},
                                   (std::uint64_t{1} << 33) + 5, std::uint64_t{1} << 62}) {
    const Permutation order(11, 4, size);
    for (const std::size_t count :
         {std::size_t{0}, std::size_t{1}, std::size_t{8}, std::size_t{29}, std::size_t{512}}) {
      if (count > size) {
        continue;
      }
      const std::uint64_t first = (size - count) / 2;
      std::vector<std::int64_t> out(count);
      order.fill(first, out);
      for (std::size_t i = 0; i < count; ++i) {
        ASSERT_EQ(static_cast<std::uint64_t>(out[i]), order(first + i)) << size << ", " << i << " of " << count;
      }
    }
  }
}

TEST(Permutation, IsABijectionForEverySmallSize) {
  for (std::uint64_t size = 1; size <= 300; ++size) {
    const Permutation order(7, 3, size);
    std::set<std::uint64_t> seen;
    for (std::uint64_t i = 0; i < size; ++i) {
      seen.insert(order(i));
    }
    ASSERT_EQ(seen.size(), size);
    ASSERT_EQ(*seen.rbegin(), size - 1);
  }
}

TEST(Permutation, DiffersBySeedAndEpochAndIsBalanced) {
  constexpr std::uint64_t kSize = 50'000;
  const Permutation a(1, 0, kSize), b(2, 0, kSize), c(1, 1, kSize), d(std::uint64_t{1} << 32 | 1, 0, kSize);
  int same_seed = 0, same_epoch = 0, same_high = 0;
  double displacement = 0;
  for (std::uint64_t i = 0; i < kSize; ++i) {
    same_seed += a(i) == b(i);
    same_epoch += a(i) == c(i);
    same_high += a(i) == d(i);
    displacement += std::abs(static_cast<double>(a(i)) - static_cast<double>(i));
  }
  // Fixed points between two random permutations are Poisson with mean 1; the mean displacement is size / 3.
  EXPECT_LT(same_seed, 8);
  EXPECT_LT(same_epoch, 8);
  EXPECT_LT(same_high, 8);
  EXPECT_NEAR(displacement / kSize / kSize, 1.0 / 3, 0.01);
}

TEST(Permutation, RefusesNothing) { EXPECT_THROW(Permutation(0, 0, 0), ConfigError); }

TEST(CounterRng, SameAddressSameNumbersAndUniform) {
  CounterRng a(5, 2, 11, RandomOp::kCrop), b(5, 2, 11, RandomOp::kCrop), other(5, 2, 11, RandomOp::kFlip);
  double sum = 0;
  int equal = 0;
  for (int i = 0; i < 10'000; ++i) {
    const double value = a.uniform();
    EXPECT_EQ(value, b.uniform());
    equal += value == other.uniform();
    sum += value;
  }
  EXPECT_NEAR(sum / 10'000, 0.5, 0.015);  // five standard deviations
  EXPECT_LT(equal, 3);
}

}  // namespace
}  // namespace stoker
