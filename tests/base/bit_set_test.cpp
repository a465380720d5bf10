// SPDX-License-Identifier: Apache-2.0
// The k-th member and the k-th non-member equal those of a plain list, at every density and around every block
// boundary.
#include "stoker/base/bit_set.h"

#include <gtest/gtest.h>

#include "stoker/base/counter_rng.h"

namespace stoker {
namespace {

TEST(BitSet, SelectsAsAPlainListDoes) {
  for (const std::int64_t size : {0, 1, 63, 64, 65, 511, 512, 1023, 1024, 1025, 2048, 5000}) {
    for (const double share : {0.0, 0.01, 0.5, 0.9, 1.0}) {
      SCOPED_TRACE(testing::Message() << size << " numbers, " << share << " of them members");
      BitSet set(size);
      std::vector<std::int64_t> inside, outside;
      for (std::int64_t i = 0; i < size; ++i) {
        CounterRng random(7, 0, static_cast<std::uint64_t>(i), RandomOp::kSplit);
        if (random.next() < share * 4294967296.0) {
          set.insert(i);
          inside.push_back(i);
        } else {
          outside.push_back(i);
        }
      }
      set.seal();
      EXPECT_EQ(set.size(), size);
      ASSERT_EQ(set.members(), std::ssize(inside));
      for (std::int64_t k = 0; k < std::ssize(inside); ++k) {
        ASSERT_EQ(set.select(k, true), inside[static_cast<std::size_t>(k)]) << k;
        ASSERT_TRUE(set.contains(inside[static_cast<std::size_t>(k)]));
      }
      for (std::int64_t k = 0; k < std::ssize(outside); ++k) {
        ASSERT_EQ(set.select(k, false), outside[static_cast<std::size_t>(k)]) << k;
        ASSERT_FALSE(set.contains(outside[static_cast<std::size_t>(k)]));
      }
    }
  }
}

}  // namespace
}  // namespace stoker
