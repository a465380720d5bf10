// SPDX-License-Identifier: Apache-2.0
// Gradients in buckets, against a plain sum of what each rank alone computes.
#include "stoker/parallel/gradient_buckets.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <chrono>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "stoker/base/error.h"
#include "support/gloo_ranks.h"
#include "support/lockstep_ranks.h"

namespace stoker::parallel {
namespace {

using testing::LockstepRanks;
using Gradients = std::vector<at::Tensor>;

// Parameters of two dtypes and two layouts; "unused" gets no gradient, "odd" only on odd ranks.
std::vector<core::Parameter> parameters() {
  std::vector<core::Parameter> result;
  const auto add = [&](const char* name, at::IntArrayRef shape, at::ScalarType dtype, bool last = false) {
    std::int64_t values = 1;
    for (const std::int64_t extent : shape) {
      values *= extent;
    }
    at::Tensor tensor = at::arange(values, at::kDouble).mul(0.3).cos().reshape(shape).to(dtype);
    tensor = last ? tensor.contiguous(at::MemoryFormat::ChannelsLast) : tensor;
    result.push_back({name, tensor.set_requires_grad(true), core::Role::kLinear});
  };
  add("filters", {4, 3, 2, 2}, at::kDouble, true);
  add("weight", {7, 5}, at::kDouble);
  add("single", {6}, at::kFloat);
  add("unused", {3}, at::kDouble);
  add("odd", {2, 2}, at::kDouble);
  result.push_back({"frozen", at::arange(3, at::kDouble), core::Role::kBias});
  return result;
}

at::Tensor loss(const std::vector<core::Parameter>& of, int rank, int pass) {
  const double factor = 1 + rank + 10 * pass;
  at::Tensor sum = (of[0].tensor * of[0].tensor).sum() * factor + of[1].tensor.sin().sum() * factor +
                   of[2].tensor.to(at::kDouble).pow(3).sum() * factor;
  return rank % 2 == 1 ? sum + of[4].tensor.sum() * factor : sum;
}

Gradients gradients(const std::vector<core::Parameter>& of) {
  Gradients result;
  for (const core::Parameter& each : of) {
    if (each.tensor.requires_grad()) {
      const at::Tensor& gradient = each.tensor.grad();
      result.push_back(gradient.defined() ? gradient.clone() : at::zeros_like(each.tensor));
    }
  }
  return result;
}

Gradients expected(int ranks, int passes) {
  std::vector<core::Parameter> own = parameters();
  for (int rank = 0; rank < ranks; ++rank) {
    for (int pass = 0; pass < passes; ++pass) {
      torch::autograd::backward({loss(own, rank, pass)}, {});
    }
  }
  return gradients(own);
}

void expect_close(const Gradients& found, const Gradients& wanted) {
  ASSERT_EQ(found.size(), wanted.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    EXPECT_LT((found[i] - wanted[i]).abs().max().item<double>(), 1e-5) << i;
    EXPECT_EQ(found[i].strides(), wanted[i].strides()) << i;
  }
}

void wait(GradientBuckets& buckets, core::Communicator& ranks) {
  at::Tensor messages;
  if (const auto pending = ranks.start_exchange(buckets.message(), messages)) {
    pending->wait();
  }
  buckets.wait(messages);
}

TEST(GradientBuckets, SumWhatEachRankComputes) {
  for (const std::int64_t bytes : {std::int64_t{1} << 20, std::int64_t{64}, std::int64_t{1}}) {  // few and many buckets
    for (const int passes : {1, 3}) {
      LockstepRanks(3).run([&](core::Communicator& ranks) {
        const std::vector<core::Parameter> own = parameters();
        GradientBuckets buckets(ranks, own, {.first = bytes, .others = bytes});
        EXPECT_EQ(buckets.size(), bytes == 1 ? 5 : bytes == 64 ? 4 : 3);
        for (int step = 0; step < 2; ++step) {  // the second one finds the buckets as the first one left them
          for (int pass = 0; pass < passes; ++pass) {
            if (pass + 1 == passes) {
              buckets.begin();
            }
            torch::autograd::backward({loss(own, ranks.rank(), pass)}, {});
          }
          buckets.start_rest();
          wait(buckets, ranks);
          expect_close(gradients(own), expected(3, passes));
          for (const core::Parameter& each : own) {
            each.tensor.mutable_grad() = at::Tensor();
          }
        }
      });
    }
  }
}

// Gradients of one rank: values of all sizes, of both signs.
at::Tensor random_gradient(int rank, std::int64_t values) {
  const at::Tensor phase = at::arange(values, at::kDouble).mul(0.731 + 0.113 * rank).add(rank);
  return (phase.sin() * phase.mul(0.37).cos().mul(6).exp()).to(at::kFloat);
}

// Against the sum in float64 of what each rank rounds: bf16 keeps 8 bits, and each of R - 1 additions rounds once more.
TEST(GradientBuckets, InBf16AreSumsOfRoundedValues) {
  constexpr std::int64_t kValues = 100'000, kSmall = 100;
  constexpr double kHalfUlp = 1.0 / 256;  // of bf16, relative
  for (const int ranks : {2, 4}) {
    at::Tensor rounded = at::zeros({kValues}, at::kDouble), sizes = rounded.clone(), exact = rounded.clone();
    at::Tensor small = at::zeros({kSmall}, at::kDouble);
    for (int rank = 0; rank < ranks; ++rank) {
      const at::Tensor own = random_gradient(rank, kValues), sent = own.to(at::kBFloat16).to(at::kDouble);
      rounded += sent;
      sizes += sent.abs();  // no partial sum is larger
      exact += own;
      small += random_gradient(rank, kSmall);
    }
    std::vector<std::vector<at::Tensor>> found(static_cast<std::size_t>(ranks));
    const auto errors = testing::run_over_gloo(ranks, [&](core::Communicator& group) {
      const auto place = static_cast<std::size_t>(group.rank());
      std::vector<core::Parameter> own;
      own.push_back({"small", at::zeros({kSmall}).set_requires_grad(true), core::Role::kBias});  // rides in the message
      own.push_back({"large", at::zeros({kValues}).set_requires_grad(true), core::Role::kLinear});
      GradientBuckets buckets(group, own, {.first = 1, .others = 1}, 0, /*bf16=*/true);
      for (int repeat = 0; repeat < 2; ++repeat) {
        for (const core::Parameter& each : own) {
          each.tensor.mutable_grad() = random_gradient(group.rank(), each.tensor.numel());
        }
        buckets.start_rest();
        wait(buckets, group);
        for (const core::Parameter& each : own) {
          found[place].push_back(each.tensor.grad().clone());
        }
      }
    });
    for (const std::string& error : errors) {
      EXPECT_EQ(error, "");
    }
    for (const auto& each : found) {
      ASSERT_EQ(each.size(), 4);
      for (std::size_t i = 0; i < 4; ++i) {
        EXPECT_TRUE(at::equal(each[i], found[0][i % 2])) << "other bytes on a rank or on repetition";
      }
    }
    const at::Tensor large = found[0][1].to(at::kDouble);
    EXPECT_LE(((large - rounded).abs() - sizes * (kHalfUlp * (ranks - 1) * 1.01)).max().item<double>(), 0);
    EXPECT_LT((found[0][0].to(at::kDouble) - small).abs().max().item<double>(),
              1e-6 * small.abs().max().item<double>());
    const double off = (large - exact).norm().item<double>() / exact.norm().item<double>();
    EXPECT_GT(off, 1e-5) << "nothing was rounded";
    EXPECT_LT(off, kHalfUlp);
    std::printf("  %d ranks: the sum in bf16 is off by %.1e of the gradient's length\n", ranks, off);
  }
}

// One rank has no samples, another one failed in its pass after some gradients: it joins with zeros for the rest.
TEST(GradientBuckets, ARankWithoutGradientsJoins) {
  LockstepRanks(3).run([&](core::Communicator& ranks) {
    const std::vector<core::Parameter> own = parameters();
    GradientBuckets buckets(ranks, own, {.first = 1, .others = 1});
    if (ranks.rank() < 2) {
      buckets.begin();
      torch::autograd::backward({loss(own, ranks.rank(), 0)}, {});
    }
    buckets.start_rest();
    wait(buckets, ranks);
    expect_close(gradients(own), expected(2, 1));
  });
}

// A bucket takes as long as on the rank that began it last: waiting for that rank is no time of the bucket. All ranks
// have the same figures, of all steps but the newest.
TEST(GradientBuckets, TellHowLongTheirSumsTook) {
  constexpr auto kLate = std::chrono::milliseconds(50);
  std::vector<std::vector<core::BucketTime>> times(2);
  const auto errors = testing::run_over_gloo(2, [&](core::Communicator& ranks) {
    const std::vector<core::Parameter> own = parameters();
    GradientBuckets buckets(ranks, own, {.first = 64, .others = 64}, /*header=*/8);
    for (int step = 0; step < 3; ++step) {
      std::this_thread::sleep_for(kLate * ranks.rank());
      buckets.begin();
      torch::autograd::backward({loss(own, ranks.rank(), 0)}, {});
      buckets.start_rest();
      wait(buckets, ranks);
    }
    times[static_cast<std::size_t>(ranks.rank())] = buckets.times();
  });
  EXPECT_THAT(errors, ::testing::Each(""));
  ASSERT_EQ(times[0].size(), 4);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(times[0][i].seconds, times[1][i].seconds);
    EXPECT_EQ(times[0][i].steps, i == 3 ? 0 : 2) << "the last one rides in the message";
    EXPECT_LT(times[0][i].seconds, 2 * 0.05) << i;
  }
  EXPECT_GT(times[0][0].seconds, 0);
  EXPECT_EQ(times[0][0].bytes, 2 * 2 * 8 + 3 * 8);
}

// Two backward passes where one was expected: the second would change what is being summed.
TEST(GradientBuckets, AGradientThatComesAgainIsAnError) {
  core::SingleRank ranks;
  const std::vector<core::Parameter> own = parameters();
  GradientBuckets buckets(ranks, own, {.first = 1, .others = 1});
  buckets.begin();
  torch::autograd::backward({own[4].tensor.sum()}, {});  // the last parameter, so its bucket starts
  EXPECT_THROW(torch::autograd::backward({own[4].tensor.sum()}, {}), Error);
}

TEST(GradientBuckets, OtherModelsHaveOtherHashes) {
  core::SingleRank ranks;
  const std::vector<core::Parameter> own = parameters();
  std::vector<core::Parameter> fewer(own.begin(), own.end() - 2);
  std::uint64_t hash = 0;
  { hash = GradientBuckets(ranks, own).hash(); }
  EXPECT_NE(GradientBuckets(ranks, fewer).hash(), hash);
  EXPECT_EQ(GradientBuckets(ranks, own).hash(), hash);
}

TEST(GradientBuckets, RefusesAParameterThatHasAHook) {
  core::SingleRank ranks;
  const std::vector<core::Parameter> own = parameters();
  const GradientBuckets first(ranks, own);
  EXPECT_THROW(GradientBuckets(ranks, own), ConfigError);
}

}  // namespace
}  // namespace stoker::parallel
