// SPDX-License-Identifier: Apache-2.0
#include "stoker/core/communicator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "stoker/base/error.h"
#include "support/lockstep_ranks.h"

namespace stoker::core {
namespace {

using stoker::testing::LockstepRanks;
using ::testing::HasSubstr;

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

TEST(Communicator, AFailureOfOneRankIsOneOfAll) {
  std::vector<std::string> said(3);
  std::vector<bool> typed(3);
  LockstepRanks(3).run([&](Communicator& ranks) {
    together(ranks, [] {});
    try {
      together(ranks, [&] {
        if (ranks.rank() == 1) {
          fail<DataError>("test", "no such file");
        }
      });
    } catch (const Error& error) {
      typed[static_cast<std::size_t>(ranks.rank())] = dynamic_cast<const DataError*>(&error) != nullptr;
      said[static_cast<std::size_t>(ranks.rank())] = error.what();
    }
  });
  EXPECT_EQ(said[1], "[test] no such file");
  EXPECT_THAT(said, ::testing::Each(HasSubstr("[test] no such file")));
  EXPECT_THAT(said[0], HasSubstr("rank 1 failed"));
  EXPECT_EQ(typed, (std::vector<bool>{true, true, true}));
}

TEST(Communicator, TheTextOfRank0ReachesAll) {
  using namespace std::string_literals;  // keeps the zero byte
  for (const std::string& text : {"{\"lr\": 1}\n\0\xff"s, ""s}) {
    LockstepRanks(3).run([&](Communicator& ranks) {
      const std::string own = ranks.rank() == 0 ? text : std::string(static_cast<std::size_t>(30 * ranks.rank()), 'x');
      EXPECT_EQ(text_of_first_rank(ranks, own), text) << ranks.rank();
    });
  }
  SingleRank alone;
  EXPECT_EQ(text_of_first_rank(alone, "mine"), "mine");
}

TEST(Communicator, TheTextsOfAllRanksReachAll) {
  using namespace std::string_literals;  // keeps the zero byte
  const std::vector<std::string> texts{"a\0b"s, "", "a longer text"};
  LockstepRanks(3).run([&](Communicator& ranks) {
    EXPECT_EQ(texts_of_ranks(ranks, texts[static_cast<std::size_t>(ranks.rank())]), texts);
  });
  SingleRank alone;
  EXPECT_EQ(texts_of_ranks(alone, "mine"), std::vector<std::string>{"mine"});
}

}  // namespace
}  // namespace stoker::core
