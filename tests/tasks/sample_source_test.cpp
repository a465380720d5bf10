// SPDX-License-Identifier: Apache-2.0
// Batches from a function of one sample: each sample once per epoch, the same from any start and for any batch size.
#include "stoker/tasks/sample_source.h"

#include <ATen/ops/tensor.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "stoker/base/error.h"
#include "stoker/tasks/rank_part.h"
#include "support/no_batch_lost.h"

namespace stoker::tasks {
namespace {

using ::testing::HasSubstr;

constexpr std::int64_t kSamples = 11;

std::vector<core::NamedTensor> draw(Split, std::int64_t index, CounterRng random) {
  return {{"index", at::tensor({index})}, {"noise", at::tensor({random.uniform()})}};
}

std::unique_ptr<core::BatchSource> source(Split split, std::int64_t batch, core::Position start = {}) {
  return sample_source(draw, split, kSamples, {.batch = batch, .seed = 7, .start = start});
}

struct Epoch {
  std::vector<std::int64_t> order;
  std::map<std::int64_t, double> noise;  // by sample
};

Epoch read(core::BatchSource& from) {
  Epoch epoch;
  while (const std::optional<core::Batch> batch = from.next()) {
    for (std::int64_t i = 0; i < batch->size(); ++i) {
      const auto index = (*batch)["index"][i].item<std::int64_t>();
      EXPECT_EQ(index, batch->indices()[static_cast<std::size_t>(i)]);
      epoch.order.push_back(index);
      epoch.noise[index] = (*batch)["noise"][i].item<double>();
    }
  }
  return epoch;
}

TEST(SampleSource, EachSampleOncePerEpochInANewOrderWithNewDraws) {
  const auto training = source(Split::kTrain, 4);
  const Epoch first = read(*training), second = read(*training);
  EXPECT_EQ(first.order.size(), kSamples);
  EXPECT_EQ(first.noise.size(), kSamples);
  EXPECT_EQ(second.noise.size(), kSamples);
  EXPECT_NE(first.order, second.order);
  EXPECT_NE(first.noise, second.noise);
}

TEST(SampleSource, TheBatchSizeChangesNoSample) {
  EXPECT_EQ(read(*source(Split::kTrain, 4)).noise, read(*source(Split::kTrain, 3)).noise);
  EXPECT_EQ(read(*source(Split::kTrain, 4)).order, read(*source(Split::kTrain, 3)).order);
}

TEST(SampleSource, AStartInTheMiddleAgreesWithOneThatWalkedThere) {
  const auto walker = source(Split::kTrain, 4);
  (void)read(*walker);
  (void)walker->next();
  const core::Batch walked = *walker->next(), started = *source(Split::kTrain, 4, {1, 1})->next();
  EXPECT_EQ(walked.position(), started.position());
  EXPECT_EQ(walked.indices(), started.indices());
  EXPECT_TRUE(walked["noise"].equal(started["noise"]));
}

TEST(SampleSource, EvaluationIsInOrderAlwaysTheSameAndApartFromTraining) {
  const auto validation = source(Split::kVal, 4);
  const Epoch first = read(*validation), second = read(*validation), other = read(*source(Split::kVal, 4));
  EXPECT_EQ(first.noise.size(), kSamples);
  EXPECT_TRUE(std::ranges::is_sorted(first.order));
  EXPECT_EQ(first.noise, second.noise);
  EXPECT_EQ(first.noise, other.noise);
  const Epoch training = read(*source(Split::kTrain, 4)), test = read(*source(Split::kTest, 4));
  for (std::int64_t i = 0; i < kSamples; ++i) {
    EXPECT_NE(first.noise.at(i), training.noise.at(i));
    EXPECT_NE(first.noise.at(i), test.noise.at(i));
  }
}

TEST(SampleSource, ATailIsDroppedWhereItIsAskedFor) {
  const auto dropping =
      sample_source(draw, Split::kTrain, kSamples, {.batch = 4, .seed = 7, .drop_tail = true, .start = {}});
  EXPECT_EQ(read(*dropping).order.size(), 8U);
}

TEST(SampleSource, NamesASampleThatDiffers) {
  const auto refusal = [](std::vector<core::NamedTensor> odd) {
    const auto odd_at_5 = [&](Split split, std::int64_t index, CounterRng random) {
      return index == 5 ? odd : draw(split, index, random);
    };
    try {
      (void)read(*sample_source(odd_at_5, Split::kVal, kSamples, {.batch = 4, .start = {}}));
    } catch (const DataError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  const at::Tensor whole = at::tensor({std::int64_t{5}}), real = at::tensor({0.5});
  EXPECT_EQ(refusal({{"index", whole}, {"noise", real}}), "");
  EXPECT_THAT(refusal({{"index", whole}}), HasSubstr("sample 5"));
  EXPECT_THAT(refusal({{"index", whole}, {"sound", real}}), HasSubstr("sample 5"));
  EXPECT_THAT(refusal({{"index", whole}, {"noise", whole}}), HasSubstr("sample 5"));
  EXPECT_THAT(refusal({{"index", whole}, {"noise", at::tensor({0.5, 0.5})}}), HasSubstr("sample 5"));
  EXPECT_THAT(refusal({{"index", whole}, {"noise", {}}}), HasSubstr("sample 5"));
}

constexpr int kCalls = 5;  // an epoch of 3 batches, its end, and a batch more

TEST(SampleSource, LosesNothingWithoutMemory) {
  const auto make = [] { return source(Split::kTrain, 4); };
  stoker::testing::loses_nothing_at_tensors(make, kCalls);
  stoker::testing::loses_nothing_at_new(make, kCalls, stoker::testing::Whose::kMine);
}

// A ragged field's offsets are computed for each part, so that the cut allocates tensors, too.
class Ragged final : public core::BatchSource {
 public:
  [[nodiscard]] std::optional<core::Batch> next() override {
    const at::Tensor offsets = at::tensor({0, 1, 3, 6, 10}, at::kLong),
                     values = at::tensor({3, 1, 4, 1, 5, 9, 2, 6, 5, 3});
    core::Batch batch({0, step_}, {0, 1, 2, 3});
    batch.set({"boxes", values + step_, core::Layout::kRagged, offsets});
    ++step_;
    return batch;
  }

 private:
  std::int64_t step_ = 0;
};

TEST(RankPart, LosesNothingWithoutMemory) {
  BatchRequest request;
  request.batch = 4;
  request.rank = 1;
  request.ranks = 2;
  const auto make = [&] { return rank_part(std::make_unique<Ragged>(), request); };
  stoker::testing::loses_nothing_at_tensors(make, kCalls);
  stoker::testing::loses_nothing_at_new(make, kCalls, stoker::testing::Whose::kMine);
}

}  // namespace
}  // namespace stoker::tasks
