// SPDX-License-Identifier: Apache-2.0
// Traces of several ranks of one training, and the rules that compare ranks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stoker/observe/doctor/examine.h"
#include "stoker/observe/doctor/trace_facts.h"
#include "support/doctor_rules.h"
#include "support/trace_text.h"

namespace stoker::observe::doctor {
namespace {

using testing::abstains;
using testing::facts_of;
using testing::finding_of;
using ::testing::HasSubstr;
using testing::TraceText;

// Two steps of 1 ms: computes for so many us, then takes part in a collective that ends with the step on every rank.
std::unique_ptr<trace::TraceFacts> rank(int number, int first, int second) {
  TraceText text;
  for (int step = 0; step < 2; ++step) {
    const int compute = step == 0 ? first : second, begin = 1000 * step;
    text.step(step, begin, 1000);
    text.launched("gemm", begin + 1, compute, 10 * step + 1);
    text.launched("ncclDevKernel_AllReduce", begin + compute + 1, 990 - compute, 10 * step + 2, 20);
  }
  return facts_of(text.beside(fmt::format(R"("distributedInfo":{{"rank":{},"world_size":3}})", number)));
}

Facts training(std::pair<int, int> zero, std::pair<int, int> one, std::pair<int, int> two) {
  std::vector<std::unique_ptr<trace::TraceFacts>> ranks;
  ranks.push_back(rank(0, zero.first, zero.second));
  ranks.push_back(rank(1, one.first, one.second));
  ranks.push_back(rank(2, two.first, two.second));
  return ranks_trace_facts(ranks);
}

TEST(RankTraces, TheRankThatKeepsOthersWaitingIsNamed) {
  const Facts facts = training({790, 790}, {900, 900}, {790, 790});
  const auto found = finding_of(facts, "straggler");
  ASSERT_TRUE(found);
  EXPECT_THAT(found->claim, HasSubstr("Rank 1 is the slowest"));
  EXPECT_THAT(found->evidence, ::testing::Contains(HasSubstr("3 ranks (trace)")));
  EXPECT_DOUBLE_EQ(*facts.figure("ranks.row"), 1);
  EXPECT_FALSE(finding_of(facts, "uneven_work"));
  EXPECT_FALSE(finding_of(training({830, 830}, {900, 900}, {830, 830}), "straggler"));  // they wait 7 % of the time
}

TEST(RankTraces, UnevenWorkHasNoSlowestRank) {
  const Facts facts = training({900, 300}, {300, 900}, {600, 600});
  EXPECT_TRUE(finding_of(facts, "uneven_work"));
  EXPECT_FALSE(finding_of(facts, "straggler"));
}

TEST(RankTraces, WhatIsMissingIsSaid) {
  std::vector<std::unique_ptr<trace::TraceFacts>> two;
  two.push_back(rank(0, 300, 300));
  two.push_back(rank(1, 900, 900));
  EXPECT_THAT(ranks_trace_facts(two).damage, ::testing::Contains(HasSubstr("1 rank of the training")));
  EXPECT_THAT(ranks_trace_facts(two).damage, ::testing::Contains(HasSubstr("2 traces are taken for the ranks")));
  EXPECT_TRUE(abstains(trace_facts(*two[0]), "straggler")) << "one rank tells nothing of the others";
}

}  // namespace
}  // namespace stoker::observe::doctor
