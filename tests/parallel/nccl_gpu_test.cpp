// SPDX-License-Identifier: Apache-2.0
// c10d's NCCL group on real GPUs, as many ranks as there are: collectives against their twins on the CPU, equal bytes
// on repetition, sums of gradients in buckets, and a rank that leaves. Prints a skip message without a GPU.
#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros_like.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <cstdio>
#include <vector>

#include "stoker/base/error.h"
#include "stoker/parallel/gradient_buckets.h"
#include "support/gloo_ranks.h"
#include "support/gpu.h"

namespace stoker::parallel {
namespace {

int gpus() { return device::backend_for(c10::kCUDA).device_count(); }

c10::Device own_gpu(const core::Communicator& ranks) {
  return {c10::DeviceType::CUDA, static_cast<c10::DeviceIndex>(ranks.rank())};
}

at::Tensor values_of(int rank, at::ScalarType type) {
  return at::arange(1000, at::kDouble).mul(0.3 + rank).sin().to(type);
}

void run_on_gpus(const std::function<void(core::Communicator&)>& work) {
  std::printf("  %d ranks, one per GPU\n", gpus());
  for (const std::string& error : stoker::testing::run_over_gloo(gpus(), work)) {
    EXPECT_EQ(error, "");
  }
}

at::Tensor largest(const std::vector<at::Tensor>& all) { return at::stack(all).amax(0); }

TEST(GpuNccl, CollectivesAreThoseOfTheHost) {
  STOKER_NEEDS_GPU();
  run_on_gpus([](core::Communicator& ranks) {
    for (const at::ScalarType type : {at::kFloat, at::kDouble}) {
      std::vector<at::Tensor> all;
      for (int rank = 0; rank < ranks.size(); ++rank) {
        all.push_back(values_of(rank, type));
      }
      const at::Tensor mine = all[static_cast<std::size_t>(ranks.rank())].to(own_gpu(ranks));
      at::Tensor sum = mine.clone(), again = mine.clone(), most = mine.clone(), last = mine.clone();
      ranks.all_reduce_sum(sum);
      if (const auto pending = ranks.start_sum(again)) {
        pending->wait();
      }
      EXPECT_TRUE(at::equal(sum, again));
      EXPECT_LT((sum.cpu() - at::stack(all).sum(0)).abs().max().item<double>(), type == at::kFloat ? 1e-5 : 1e-12);
      ranks.all_reduce_max(most);
      EXPECT_TRUE(at::equal(most.cpu(), largest(all)));
      ranks.broadcast(last, ranks.size() - 1);
      EXPECT_TRUE(at::equal(last.cpu(), all.back()));
      at::Tensor rows;
      if (const auto pending = ranks.start_exchange(mine, rows)) {
        pending->wait();
      }
      EXPECT_TRUE(at::equal(rows.cpu(), at::stack(all)));
      ranks.settle();
    }
  });
}

std::vector<core::Parameter> parameters(c10::Device device) {
  std::vector<core::Parameter> result;
  for (const std::int64_t width : {7, 300, 20'000}) {
    const at::Tensor weight = at::arange(width * 3, at::kFloat).mul(0.01).cos().view({width, 3}).to(device);
    result.push_back({"weight", weight.set_requires_grad(true), core::Role::kLinear});
  }
  return result;
}

at::Tensor loss(const std::vector<core::Parameter>& of, int rank) {
  return of[0].tensor.sin().sum() * (1 + rank) + of[1].tensor.square().sum() * (2 + rank) + of[2].tensor.exp().sum();
}

std::vector<at::Tensor> summed(core::Communicator& ranks) {
  const std::vector<core::Parameter> own = parameters(own_gpu(ranks));
  GradientBuckets buckets(ranks, own, {.first = 1 << 10, .others = 1 << 12});
  buckets.begin();
  torch::autograd::backward({loss(own, ranks.rank())}, {});
  buckets.start_rest();
  buckets.wait({});
  std::vector<at::Tensor> result;
  for (const core::Parameter& each : own) {
    result.push_back(each.tensor.grad().cpu());
  }
  return result;
}

TEST(GpuNccl, GradientsInBucketsAreSums) {
  STOKER_NEEDS_GPU();
  const std::vector<core::Parameter> whole = parameters(c10::kCPU);
  for (int rank = 0; rank < gpus(); ++rank) {
    torch::autograd::backward({loss(whole, rank)}, {});
  }
  run_on_gpus([&](core::Communicator& ranks) {
    const std::vector<at::Tensor> found = summed(ranks), again = summed(ranks);
    for (std::size_t i = 0; i < found.size(); ++i) {
      EXPECT_LT((found[i] - whole[i].tensor.grad()).abs().max().item<double>(), 1e-4) << i;
      EXPECT_TRUE(at::equal(found[i], again[i])) << i << ": other bytes on repetition";
    }
  });
}

// A rank leaves in the middle of sums that the others wait for on their GPUs: nobody hangs.
TEST(GpuNccl, ARankThatLeavesCutsOffTheOthers) {
  STOKER_NEEDS_GPU();
  if (gpus() < 2) {
    GTEST_SKIP() << "needs two GPUs, this machine has one";
  }
  const auto errors = stoker::testing::run_over_gloo(gpus(), [](core::Communicator& ranks) {
    at::Tensor values = values_of(ranks.rank(), at::kFloat).to(own_gpu(ranks));
    ranks.all_reduce_sum(values);
    ranks.settle();
    if (ranks.rank() == 1) {
      fail<DataError>("test", "no more data");
    }
    const auto pending = ranks.start_sum(values);
    if (pending) {
      pending->wait();
    }
    ranks.settle();
  });
  for (std::size_t rank = 0; rank < errors.size(); ++rank) {
    EXPECT_NE(errors[rank], "") << rank;
  }
}

}  // namespace
}  // namespace stoker::parallel
