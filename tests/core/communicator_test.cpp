// SPDX-License-Identifier: Apache-2.0
#include "stoker/core/communicator.h"

#include <gtest/gtest.h>

#include <array>

#include "support/lockstep_ranks.h"

namespace stoker::core {
namespace {

using stoker::testing::LockstepRanks;

TEST(Communicator, AFlagOfOneRankReachesAll) {
  int calls = 0;
  LockstepRanks(3).run([&](Communicator& ranks) {
    std::array flags{ranks.rank() == 1, false, ranks.rank() == 2};
    any_rank(ranks, flags);
    EXPECT_EQ(flags, (std::array{true, false, true})) << ranks.rank();
    ++calls;
  });
  EXPECT_EQ(calls, 3);
  SingleRank alone;
  std::array flags{true, false};
  any_rank(alone, flags);
  EXPECT_EQ(flags, (std::array{true, false}));
}

TEST(Communicator, TheTextOfRank0ReachesAll) {
  for (const std::string& text : {std::string("{\"lr\": 1}\n\0\xff", 14), std::string()}) {
    LockstepRanks(3).run([&](Communicator& ranks) {
      const std::string own = ranks.rank() == 0 ? text : std::string(static_cast<std::size_t>(30 * ranks.rank()), 'x');
      EXPECT_EQ(text_of_first_rank(ranks, own), text) << ranks.rank();
    });
  }
  SingleRank alone;
  EXPECT_EQ(text_of_first_rank(alone, "mine"), "mine");
}

}  // namespace
}  // namespace stoker::core
