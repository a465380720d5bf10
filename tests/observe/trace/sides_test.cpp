// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "stoker/observe/trace/facts/compare.h"
#include "stoker/observe/trace/facts/ranks.h"
#include "support/trace_text.h"

namespace stoker::observe::trace {
namespace {

using ::testing::ElementsAre;
using testing::facts_of;
using testing::TraceText;

std::int64_t us(std::int64_t microseconds) { return microseconds * 1000; }

constexpr const char* kReduce = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*)";

// Computes for `compute` us, then takes part in a collective that ends at 1000 on every rank, twice.
std::unique_ptr<TraceFacts> rank(int number, int compute, double clock) {
  TraceText trace;
  for (const double begin : {clock, clock + 2000}) {
    trace.step(static_cast<int>(begin - clock) / 2000, begin, 1000)
        .kernel("gemm", begin, compute, 1, 7)
        .kernel(kReduce, begin + compute, 1000 - compute, 2, 20);
  }
  return facts_of(trace.beside(fmt::format(R"("distributedInfo":{{"rank":{},"world_size":4}})", number)));
}

TEST(Ranks, FindTheOneThatTheOthersWaitFor) {
  std::vector<std::unique_ptr<TraceFacts>> traces;
  traces.push_back(rank(0, 300, 0));
  traces.push_back(rank(1, 900, 7'000'000));  // clocks differ
  traces.push_back(rank(3, 350, 500));
  const RanksFacts facts = ranks_facts(traces);
  EXPECT_EQ(facts.straggler, 1);
  EXPECT_EQ(facts.rows[0].waited, us(2 * 600));
  EXPECT_EQ(facts.rows[1].waited, 0);
  EXPECT_EQ(facts.rows[2].waited, us(2 * 550));
  EXPECT_EQ(facts.rows[0].exposed_communication, us(2 * 700));
  EXPECT_THAT(facts.missing, ElementsAre(2));
  EXPECT_DOUBLE_EQ(facts.step_skew(), 0);
  ASSERT_EQ(facts.collectives.size(), 1U);
  EXPECT_EQ(facts.collectives[0].matched, 2);
  EXPECT_EQ(facts.unmatched, 0);
  // 900 us of rank 1, 100 in the collective, 1,000 until the next step begins, and the same again.
  EXPECT_EQ(facts.path.length, us(3000));
  EXPECT_EQ(facts.path.in_collectives, us(200));
  EXPECT_THAT(facts.path.by_row, ElementsAre(0, us(2800), 0));
}

TEST(Ranks, NameNoOneIfAllAreAlike) {
  std::vector<std::unique_ptr<TraceFacts>> traces;
  traces.push_back(rank(0, 300, 0));
  traces.push_back(rank(1, 303, 0));
  EXPECT_EQ(ranks_facts(traces).straggler, -1);
  traces.push_back(facts_of(TraceText().op("aten::mm", 0, 5)));  // no device, so nothing can be matched
  EXPECT_EQ(ranks_facts(traces).path.length, -1);
}

TEST(Compare, TellsWhatChangedPerStep) {
  const auto before = facts_of(TraceText()
                                   .step(1, 0, 100)
                                   .step(2, 100, 100)
                                   .op("aten::mm", 0, 20)
                                   .launched("gemm", 5, 40, 1)
                                   .launched("copy", 60, 10, 2)
                                   .launched("gemm", 105, 40, 3)
                                   .launched("old", 160, 10, 4));
  const auto after = facts_of(TraceText()
                                  .step(1, 0, 100)
                                  .op("aten::mm", 0, 20)
                                  .launched("gemm", 5, 30, 1)
                                  .launched("copy", 60, 5, 2)
                                  .launched("fresh", 80, 3, 3));
  const Comparison found = compare(*before, *after);
  EXPECT_TRUE(found.per_step);
  ASSERT_EQ(found.kernels.size(), 4U);
  EXPECT_EQ(found.kernels[0].name, "gemm");
  EXPECT_EQ(found.kernels[0].word, Change::Word::kFaster);
  EXPECT_DOUBLE_EQ(found.kernels[0].before, 40'000);
  EXPECT_DOUBLE_EQ(found.kernels[0].after, 30'000);
  EXPECT_DOUBLE_EQ(found.kernels[0].times_before, 1);
  EXPECT_EQ(found.kernels[1].name, "old");
  EXPECT_EQ(found.kernels[1].word, Change::Word::kGone);
  EXPECT_EQ(found.kernels[2].name, "fresh");
  EXPECT_EQ(found.kernels[2].word, Change::Word::kNew);
  EXPECT_EQ(found.kernels[3].name, "copy");
  EXPECT_EQ(found.kernels[3].word, Change::Word::kSame);  // half as often, twice per step
  const auto mm = std::ranges::find(found.operators, "aten::mm", &Change::name);
  ASSERT_NE(mm, found.operators.end());
  EXPECT_DOUBLE_EQ(mm->before, 20'000);
  EXPECT_EQ(mm->word, Change::Word::kSlower);
}

TEST(Compare, EqualTracesHaveNoChange) {
  const auto some = rank(0, 300, 0), same = rank(0, 300, 0);
  const Comparison found = compare(*some, *same);
  for (const std::vector<Change>* changes : {&found.kernels, &found.operators, &found.idle}) {
    for (const Change& each : *changes) {
      EXPECT_EQ(each.word, Change::Word::kSame) << each.name;
      EXPECT_EQ(each.difference(), 0);
    }
  }
}

}  // namespace
}  // namespace stoker::observe::trace
