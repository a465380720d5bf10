// SPDX-License-Identifier: Apache-2.0
// Which rank is slowest, and why, from times that the test makes up.
#include "stoker/observe/straggler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stoker::observe {
namespace {

using ::testing::HasSubstr;
using Cause = Straggler::Cause;

// 100 steps of 40 ms; all ranks alike.
core::RankTimes alike(std::size_t ranks) {
  core::RankTimes times;
  times.steps = 100;
  times.seconds = 4;
  times.exposed = 0.2;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    times.ranks.push_back({.data = 0.1, .saving = 0, .computed = 3.6, .waited = 0.05, .delayed = 0.05});
    times.hosts.push_back("node" + std::to_string(rank));
  }
  return times;
}

// One rank takes longer for something, and the others wait for it.
core::RankTimes slow(std::size_t ranks, std::size_t rank, double core::RankTime::*time, double seconds) {
  core::RankTimes times = alike(ranks);
  times.seconds += seconds;
  for (std::size_t other = 0; other < ranks; ++other) {
    (other == rank ? times.ranks[other].*time : times.ranks[other].waited) += seconds;
    if (other == rank && time == &core::RankTime::delayed) {  // while it computes
      times.ranks[other].computed += seconds;
    }
  }
  return times;
}

TEST(Straggler, IsNamedWithItsCause) {
  const struct {
    double core::RankTime::*time;
    Cause cause;
    const char* words;
  } cases[] = {{&core::RankTime::data, Cause::kData, "it waits for data 13 ms a step, others 1 ms"},
               {&core::RankTime::saving, Cause::kSaving, "it saves checkpoints 12 ms a step, others 0 ms"},
               {&core::RankTime::delayed, Cause::kHost, "its thread waits for a core 12.5 ms a step, others 0.5 ms"},
               {&core::RankTime::computed, Cause::kCompute, "it computes 48 ms a step, others 36 ms"}};
  for (const std::size_t ranks : {2, 4}) {
    for (const auto& each : cases) {
      const Straggler found = find_straggler(slow(ranks, 1, each.time, 1.2));
      EXPECT_EQ(found.rank, 1);
      EXPECT_EQ(found.cause, each.cause);
      EXPECT_THAT(found.words, HasSubstr("rank 1 on node1 is slowest: "));
      EXPECT_THAT(found.words, HasSubstr(each.words));
      EXPECT_THAT(found.words, HasSubstr("others wait 12 ms a step for it (23 % of the time)"));
    }
  }
  EXPECT_EQ(find_straggler(slow(4, 3, &core::RankTime::data, 1.2)).brief, "slowest rank 3, data");
}

// A loader on the training thread that lacks a core is late, too: the core is the cause.
TEST(Straggler, OfDataThatComesLateForWantOfACoreTheCauseIsTheHost) {
  core::RankTimes times = slow(2, 1, &core::RankTime::data, 1.2);
  times.ranks[1].delayed += 0.5;
  EXPECT_EQ(find_straggler(times).cause, Cause::kData);
  times.ranks[1].delayed += 0.2;
  EXPECT_EQ(find_straggler(times).cause, Cause::kHost);
}

TEST(Straggler, IsNoneWhereRanksDifferLittleOrOneIsFaster) {
  EXPECT_EQ(find_straggler(alike(4)).cause, Cause::kNone);
  EXPECT_EQ(find_straggler(slow(4, 2, &core::RankTime::computed, 0.4)).cause, Cause::kNone) << "9 % of the time";
  EXPECT_EQ(find_straggler(slow(4, 2, &core::RankTime::computed, 0.6)).rank, 2);
  core::RankTimes times = alike(4);  // rank 0 has less to do
  times.ranks[0].waited += 2;
  times.ranks[0].computed -= 2;
  EXPECT_EQ(find_straggler(times).cause, Cause::kNone);
  times.ranks[1].waited += 2;  // two of four: the others are late
  times.ranks[1].computed -= 2;
  EXPECT_EQ(find_straggler(times).rank, 2);
  EXPECT_EQ(find_straggler({}).cause, Cause::kNone);
}

TEST(Straggler, ExchangesThatNothingHidesAreNoRanksFault) {
  core::RankTimes times = alike(2);
  times.exposed = 1.6;
  const Straggler found = find_straggler(times);
  EXPECT_EQ(found.cause, Cause::kNetwork);
  EXPECT_EQ(found.rank, -1);
  EXPECT_EQ(found.words, "exchanges between ranks that nothing hides take 16 ms a step (40 % of the time)");
}

// A rank that does not tell how long it waited for data computes for all that is known.
TEST(Straggler, WhatIsUnknownIsNoCause) {
  core::RankTimes times = slow(2, 1, &core::RankTime::computed, 1.2);
  for (core::RankTime& each : times.ranks) {
    each.data = each.saving = each.delayed = -1;
  }
  EXPECT_EQ(find_straggler(times).cause, Cause::kCompute);
}

TEST(Straggler, IsToldWhenTwoPeriodsInARowHaveIt) {
  const core::RankTimes late = slow(2, 1, &core::RankTime::data, 1.2);
  StragglerWatch watch;
  EXPECT_EQ(watch.look(late).rank, -1);
  EXPECT_EQ(watch.look(late).rank, 1);
  EXPECT_EQ(watch.look(alike(2)).rank, -1);
  EXPECT_EQ(watch.look(late).rank, -1);
  EXPECT_EQ(watch.look(slow(2, 0, &core::RankTime::data, 1.2)).rank, -1) << "another rank";
}

TEST(RanksText, HasARowPerRank) {
  core::RankTimes times = slow(2, 1, &core::RankTime::data, 1.2);
  times.hosts[0] = "bad\x1bname";
  times.buckets = {{.bytes = 1'000'000, .seconds = 0.1, .steps = 100},
                   {.bytes = 4'000'000, .seconds = 0.2, .steps = 100}};
  times.ranks[0].delayed = -1;
  times.ranks[0].saving = 1e-6;
  EXPECT_EQ(
      ranks_text(times),
      "2 ranks: 100 steps; 3.8 % of the time in exchanges that nothing hid; 5 MB of gradients a step in 2 buckets, "
      "at 1,000 to 2,000 MB/s\n"
      "  ms a step             computing      data    saving   no core waiting for others\n"
      "  rank 0 on bad\\x1bname        36         1         0         -               12.5\n"
      "  rank 1 on node1              36        13         0       0.5                0.5");
  EXPECT_EQ(ranks_text({}), "");
  EXPECT_THAT(ranks_text(alike(100)), HasSubstr("\n  and 84 more, which waited longer"));
}

}  // namespace
}  // namespace stoker::observe
