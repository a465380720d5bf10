// SPDX-License-Identifier: Apache-2.0
// Ranks as threads of one process, each with a process group of its own, over Gloo on the loopback interface.
#include "stoker/study/ranks_bench/rank_steps.h"

#include <ATen/ops/equal.h>
#include <ATen/ops/ones_like.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "stoker/parallel/process_group.h"
#include "stoker/study/ranks_bench/ranks_bench.h"
#include "stoker/study/ranks_bench/sleeping_model.h"
#include "stoker/train/step.h"
#include "support/temp_folder.h"

namespace stoker::study {
namespace {

using namespace std::chrono_literals;
using testing::TempFolder;

const SleepingOptions kAwake{.segments = 6, .values = std::int64_t{1} << 17, .forward = 0us, .backward = 0us};

StepCase awake_case() {
  return {.model = std::make_unique<SleepingModel>(kAwake),
          .batch = SleepingModel::batch(),
          .optimizer = {.name = "sgd", .momentum = 0, .nesterov = false}};
}

const Effort kShort{.seconds = 1e-6};  // the least number of calls

TEST(SleepingModel, HasGradientsLikeAnyModel) {
  SleepingModel model(kAwake);
  train::Step step(model, {.name = "sgd", .momentum = 0, .nesterov = false});
  step.compute(SleepingModel::batch(), 0);
  for (const core::Parameter& each : model.parameters()) {
    EXPECT_TRUE(at::equal(each.tensor.grad(), at::ones_like(each.tensor))) << each.name;
  }
}

// Six gradients of 512 KiB in buckets of 1 MiB and then at most 4 MiB: 2, 2 and 2 of them, or 2 and 4.
TEST(RecordSteps, HasTheNormalisersTheBucketsAndTheMessage) {
  StepCase made = awake_case();
  const Course course = record_steps(made, kShort);
  ASSERT_FALSE(course.calls.empty());
  EXPECT_EQ(course.calls.front().kind, Call::Kind::kGather);
  double started = 0;
  std::vector<std::size_t> waited;
  for (std::size_t i = 1; i < course.calls.size(); ++i) {
    const Call& call = course.calls[i];
    EXPECT_GE(call.at_s, course.calls[i - 1].at_s);
    EXPECT_LE(call.at_s, course.seconds);
    started += call.kind == Call::Kind::kStart ? call.bytes : 0;
    if (call.kind == Call::Kind::kWait) {
      waited.push_back(call.sum);
    }
  }
  const double gradients = 6 * (512 << 10);
  EXPECT_EQ(started, gradients);
  EXPECT_EQ(std::ranges::count(course.calls, Call::Kind::kGather, &Call::kind), 2);  // normalisers; the message
  EXPECT_EQ(std::ranges::count(course.calls, Call::Kind::kStart, &Call::kind), std::ssize(waited));
  EXPECT_GE(std::ssize(waited), 2);
  std::ranges::sort(waited);
  for (std::size_t i = 0; i < waited.size(); ++i) {
    EXPECT_EQ(waited[i], i);  // each once
  }
}

// The result of work on each of two ranks.
template <typename Work>
auto on_two_ranks(const Work& work) {
  const TempFolder folder;
  std::array<decltype(work(std::declval<core::Communicator&>())), 2> results{};
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < 2; ++rank) {
    threads.emplace_back([&, rank] {
      parallel::Place place;
      place.rank = place.local_rank = rank;
      place.ranks = place.local_ranks = 2;
      place.meeting.file = (folder / "meeting").native();
      const auto ranks = parallel::join(place);
      results[static_cast<std::size_t>(rank)] = work(*ranks);
      ranks->barrier();
    });
  }
  threads.clear();
  return results;
}

TEST(TimeSums, GivesPositiveTimesOfAllSizes) {
  const auto found = on_two_ranks([](core::Communicator& ranks) { return time_sums(ranks, kShort); });
  for (const std::vector<TimedSum>& sums : found) {
    ASSERT_EQ(sums.size(), std::size(kSumBytes));
    for (std::size_t i = 0; i < sums.size(); ++i) {
      EXPECT_EQ(sums[i].bytes, static_cast<double>(kSumBytes[i]));
      EXPECT_GT(sums[i].seconds, 0);
    }
  }
}

TEST(TimeSums, AStopOfTheFirstRankEndsAllAtTheSamePlace) {
  const auto found = on_two_ranks([](core::Communicator& ranks) {
    int asked = 0;
    Effort effort = kShort;
    effort.stop = [&] { return ranks.rank() == 0 && ++asked > 3; };
    const std::size_t sums = time_sums(ranks, effort).size();
    StepCase made = awake_case();
    return std::pair(sums, time_steps(ranks, made, effort));
  });
  EXPECT_EQ(found[0], std::pair(std::size_t{3}, 0.0));
  EXPECT_EQ(found[1], found[0]);
}

TEST(TimeExchange, GivesTheSameKindOfTimeOnAllRanks) {
  const auto found = on_two_ranks([](core::Communicator& ranks) { return time_exchange(ranks, kShort); });
  EXPECT_GT(found[0], 0);
  EXPECT_GT(found[1], 0);
}

TEST(TimeSteps, TakesTheSameStepsOnAllRanks) {
  const auto found = on_two_ranks([](core::Communicator& ranks) {
    StepCase made = awake_case();
    return time_steps(ranks, made, kShort);
  });
  EXPECT_GT(found[0], 0);
  EXPECT_GT(found[1], 0);
}

RanksBench made_bench() {
  RanksBench bench;
  bench.model = "made";
  bench.batch = 10;
  bench.cores = 2;
  bench.course = bench.sleeping = {.seconds = 0.1, .calls = {{Call::Kind::kSum, 0.1, 1e6}}};
  bench.measured = {{.ranks = 1, .step_s = 0.1, .sleeping_s = 0.1, .exchange_s = 0, .sums = {}},
                    {.ranks = 2, .step_s = 0.2, .sleeping_s = 0.1, .exchange_s = 0, .sums = {}}};
  bench.link = Link{.latency_s = 1e-3, .bytes_per_s = 1e8, .exchange_latency_s = 0};
  bench.link_ranks = 2;
  return bench;
}

TEST(RanksBench, ForecastsFrom8To1024Ranks) {
  const std::vector<Forecast> told = forecasts(made_bench());
  ASSERT_EQ(told.size(), 8);
  EXPECT_EQ(told.front().ranks, 8);
  EXPECT_EQ(told.back().ranks, 1024);
}

TEST(RanksBench, ForecastsForTheNetworkThatIsAskedFor) {
  RanksBench bench = made_bench();
  const double here = forecasts(bench).front().seconds;
  bench.asked = Link{.latency_s = 1e-3, .bytes_per_s = 1e7, .exchange_latency_s = 0};
  EXPECT_GT(forecasts(bench).front().seconds, here);
}

TEST(RanksBench, SaysWhatIsAModelAndWhatIsMeasured) {
  const std::string text = ranks_bench_text(made_bench());
  EXPECT_NE(text.find("a model and no measurement"), std::string::npos);
  EXPECT_NE(text.find("50 %"), std::string::npos);  // two ranks that take twice as long
  EXPECT_NE(text.find("1,024"), std::string::npos);
}

TEST(RanksBench, StoppedBeforeAnythingItSaysSo) {
  RanksBench bench;
  bench.stopped = true;
  EXPECT_NE(ranks_bench_text(bench).find("Stopped before anything"), std::string::npos);
  EXPECT_NE(ranks_bench_json(bench).find("\"stopped\": true"), std::string::npos);
  EXPECT_TRUE(forecasts(bench).empty());
}

}  // namespace
}  // namespace stoker::study
