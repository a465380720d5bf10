// SPDX-License-Identifier: Apache-2.0
// The cut of a pipeline against all cuts of random chains.
#include "stoker/parallel/pipeline_cut.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <random>

#include "stoker/base/error.h"

namespace stoker::parallel {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::vector<SegmentLoad> random_chain(std::mt19937& draw, int segments) {
  std::uniform_int_distribution<int> number(0, 20);
  std::vector<SegmentLoad> chain;
  for (int i = 0; i < segments; ++i) {
    chain.push_back({.name = "layer" + std::to_string(i),
                     .seconds = static_cast<double>(number(draw)),
                     .state_bytes = number(draw),
                     .kept_bytes = number(draw),
                     .output_bytes = number(draw),
                     .gradient_bytes = number(draw)});
  }
  return chain;
}

// Time of a cut as its definition says it, or infinity if it must not be. cut: where stages begin, and the end.
double seconds_of(const std::vector<SegmentLoad>& chain, const std::vector<SharedParameter>& shared,
                  const PipelineLimits& limits, const std::vector<int>& cut) {
  constexpr double kNever = std::numeric_limits<double>::infinity();
  double slowest = 0;
  for (int stage = 0; stage < limits.stages; ++stage) {
    const int first = cut[static_cast<std::size_t>(stage)], last = cut[static_cast<std::size_t>(stage) + 1];
    const auto at = [&](int segment) { return chain[static_cast<std::size_t>(segment)]; };
    double seconds = 0;
    std::int64_t state = 0, kept = stage > 0 ? at(first - 1).output_bytes : 0;
    for (int i = first; i < last; ++i) {
      seconds += at(i).seconds;
      state += at(i).state_bytes;
      kept += at(i).kept_bytes;
    }
    kept += stage + 1 < limits.stages ? at(last - 1).output_bytes : 0;
    const auto moved = [&](int border) {
      return 2 * limits.latency +
             static_cast<double>(at(border - 1).output_bytes + at(border - 1).gradient_bytes) / limits.bytes_per_second;
    };
    seconds += (stage > 0 ? moved(first) : 0) + (stage + 1 < limits.stages ? moved(last) : 0);
    if (limits.bytes > 0 &&
        state + std::min(limits.microbatches, 2 * (limits.stages - stage) - 1) * kept > limits.bytes) {
      return kNever;
    }
    for (const SharedParameter& each : shared) {
      const auto inside = std::ranges::count_if(each.segments, [&](int i) { return i >= first && i < last; });
      if (inside != 0 && inside != std::ssize(each.segments)) {
        return kNever;
      }
    }
    slowest = std::max(slowest, seconds);
  }
  return slowest;
}

double least_of_all(const std::vector<SegmentLoad>& chain, const std::vector<SharedParameter>& shared,
                    const PipelineLimits& limits) {
  double least = std::numeric_limits<double>::infinity();
  std::vector<int> cut{0};
  const std::function<void()> go_on = [&] {
    if (static_cast<int>(cut.size()) == limits.stages) {
      cut.push_back(static_cast<int>(chain.size()));
      least = std::min(least, seconds_of(chain, shared, limits, cut));
      cut.pop_back();
      return;
    }
    for (int next = cut.back() + 1; next < static_cast<int>(chain.size()); ++next) {
      cut.push_back(next);
      go_on();
      cut.pop_back();
    }
  };
  go_on();
  return least;
}

TEST(PipelineCut, IsTheBestOfAllCutsOfRandomChains) {
  std::mt19937 draw(5);
  const auto number = [&](int from, int to) { return std::uniform_int_distribution<int>(from, to)(draw); };
  int none = 0, limited = 0;
  for (int round = 0; round < 600; ++round) {
    const std::vector<SegmentLoad> chain = random_chain(draw, number(1, 9));
    const int size = static_cast<int>(chain.size());
    PipelineLimits limits{.stages = number(1, std::min(size, 5)), .microbatches = number(1, 6)};
    limits.bytes = number(0, 2) == 0 ? 0 : number(20, 250);
    limits.bytes_per_second = 4;
    limits.latency = number(0, 3);
    std::vector<SharedParameter> shared;
    if (number(0, 3) == 0) {
      const int first = number(0, size - 1);
      shared.push_back({"tied", {first, std::min(size - 1, first + number(0, 3))}});
    }
    const double least = least_of_all(chain, shared, limits);
    if (least == std::numeric_limits<double>::infinity()) {
      ++none;
      EXPECT_THROW((void)cut_pipeline(chain, shared, limits), ConfigError) << "round " << round;
      continue;
    }
    const auto stages = cut_pipeline(chain, shared, limits);
    std::vector<int> cut{0};
    for (std::size_t stage = 0; stage < stages.size(); ++stage) {
      EXPECT_EQ(stages[stage].first, cut.back());
      EXPECT_LT(stages[stage].first, stages[stage].last);
      cut.push_back(stages[stage].last);
      EXPECT_EQ(stages[stage],
                stage_of(chain, limits, static_cast<int>(stage), stages[stage].first, stages[stage].last));
    }
    ASSERT_EQ(std::ssize(stages), limits.stages);
    EXPECT_EQ(cut.back(), size);
    EXPECT_DOUBLE_EQ(seconds_of(chain, shared, limits, cut), least) << "round " << round;
    PipelineLimits without = limits;
    without.bytes = 0;
    limited += least_of_all(chain, shared, without) < least ? 1 : 0;
  }
  EXPECT_GT(none, 10) << "the limit did not matter";
  EXPECT_GT(limited, 10) << "the limit did not change a cut";
}

std::vector<SegmentLoad> even_chain(int segments, std::int64_t state, std::int64_t kept) {
  std::vector<SegmentLoad> chain;
  for (int i = 0; i < segments; ++i) {
    chain.push_back({.name = "layer" + std::to_string(i), .seconds = 1, .state_bytes = state, .kept_bytes = kept});
  }
  return chain;
}

std::string refusal(const std::vector<SegmentLoad>& chain, const std::vector<SharedParameter>& shared,
                    const PipelineLimits& limits) {
  try {
    (void)cut_pipeline(chain, shared, limits);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

// The first stages hold more microbatches at a time.
TEST(PipelineCut, CountsTheMicrobatchesInFlight) {
  const std::vector<SegmentLoad> chain = even_chain(6, 0, 10);
  const auto lengths = [&](std::int64_t bytes, int microbatches) {
    std::vector<int> result;
    for (const PipelineStage& each :
         cut_pipeline(chain, {}, {.stages = 2, .microbatches = microbatches, .bytes = bytes})) {
      result.push_back(each.last - each.first);
    }
    return result;
  };
  EXPECT_EQ(lengths(0, 8), (std::vector<int>{3, 3}));
  EXPECT_EQ(lengths(60, 8), (std::vector<int>{2, 4}));
  EXPECT_EQ(lengths(60, 1), (std::vector<int>{3, 3})) << "there is only one microbatch";
}

TEST(PipelineCut, SaysWhichSegmentIsTooLarge) {
  std::vector<SegmentLoad> chain = even_chain(4, 1024, 1024);
  chain[2].state_bytes = 10 * 1024;
  EXPECT_THAT(refusal(chain, {}, {.stages = 2, .microbatches = 4, .bytes = 8 * 1024}),
              AllOf(HasSubstr("segment layer2 needs 11.0 KiB"), HasSubstr("3.00 KiB more than the 8.00 KiB")));
  EXPECT_THAT(refusal(chain, {{"tied", {0, 1}}}, {.stages = 3, .microbatches = 1, .bytes = 3 * 1024}),
              HasSubstr("segments layer0 to layer1 stay together and need 4.00 KiB"));
}

TEST(PipelineCut, SaysWhatWouldFit) {
  EXPECT_THAT(refusal(even_chain(4, 1024, 0), {}, {.stages = 2, .microbatches = 4, .bytes = 1500}),
              AllOf(HasSubstr("no cut into 2 stages fits 1.46 KiB each"), HasSubstr("needs 2.00 KiB in stage 1"),
                    HasSubstr("segments layer0 to layer1, 3 microbatches at a time")));
}

TEST(PipelineCut, SaysHowManyStagesThereCanBe) {
  EXPECT_THAT(refusal(even_chain(3, 0, 0), {}, {.stages = 4}),
              AllOf(HasSubstr("chain of 3 segments"), HasSubstr("set pipeline=3")));
  EXPECT_THAT(refusal(even_chain(3, 0, 0), {}, {.stages = 0}), HasSubstr("at least one stage"));
  const SharedParameter tied{"embedding.weight", {0, 2}}, alone{"head.bias", {3}};
  EXPECT_THAT(refusal(even_chain(4, 0, 0), {tied, alone}, {.stages = 3}),
              AllOf(HasSubstr("share a parameter stay in one stage (embedding.weight)"), HasSubstr("into 2 stages"),
                    HasSubstr("not 3; set pipeline=2")));
}

}  // namespace
}  // namespace stoker::parallel
