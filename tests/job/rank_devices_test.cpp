// SPDX-License-Identifier: Apache-2.0
// Each rank needs a GPU of its own.
#include "stoker/job/rank_devices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "stoker/base/error.h"
#include "support/lockstep_ranks.h"

namespace stoker::job {
namespace {

std::string why_not(const std::vector<RankDevice>& devices) {
  try {
    check_devices(devices);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST(RankDevices, AreOneForEachRank) {
  const std::string first = "0000:3B:00.0", second = "0000:5E:00.0";
  EXPECT_EQ(why_not({{first, "a", "one"}, {second, "a", "one"}, {first, "b", "two"}, {second, "b", "two"}}), "");
  EXPECT_EQ(why_not({{"", "a", "one"}, {"", "a", "one"}}), "");  // CPUs
  EXPECT_THAT(why_not({{first, "b", "two"}, {first, "a", "one"}, {second, "a", "one"}, {first, "a", "one"}}),
              ::testing::HasSubstr("ranks 1 and 3 share one GPU, 0000:3B:00.0 of one"));
}

// Over the ranks: on CPUs nobody shares.
TEST(RankDevices, AreComparedOverRanks) {
  stoker::testing::LockstepRanks(3).run(
      [](core::Communicator& ranks) { EXPECT_NO_THROW(check_devices_of_ranks(ranks, c10::kCPU)); });
}

}  // namespace
}  // namespace stoker::job
