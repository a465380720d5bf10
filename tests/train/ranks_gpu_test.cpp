// SPDX-License-Identifier: Apache-2.0
// Steps of as many ranks as there are GPUs, each on its own, against one process with the whole batch: losses, running
// statistics and weights. On one GPU: what a rank exchanges with itself changes nothing. Prints a skip message without
// a GPU.
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/equal.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <cstdio>
#include <vector>

#include "stoker/device/placement.h"
#include "stoker/optim/optimizer.h"
#include "stoker/precision/grad_scaler.h"
#include "stoker/train/pass_loss.h"
#include "stoker/train/rank_exchange.h"
#include "stoker/train/step.h"
#include "support/gloo_ranks.h"
#include "support/gpu.h"
#include "support/toy_trainable.h"

namespace stoker::train {
namespace {

using stoker::testing::toy_batch;
using stoker::testing::ToyTrainable;
using Weights = std::vector<at::Tensor>;

constexpr std::int64_t kSteps = 5;

class OnGpu final : public ToyTrainable {
 public:
  explicit OnGpu(c10::Device device) {
    const at::NoGradGuard no_grad;
    for (const core::Parameter& each : parameters()) {
      const at::Tensor handle = each.tensor;
      handle.set_data(handle.detach().to(device));
    }
  }
};

Weights weights_of(const core::Trainable& model) {
  Weights all;
  for (const core::Parameter& each : model.parameters()) {
    all.push_back(each.tensor.detach().cpu().clone());
  }
  return all;
}

Weights train(core::Communicator& ranks, c10::Device device) {
  OnGpu model(device);
  const auto optimizer = optim::make_optimizer({.name = "sgd"}, model.parameters());
  precision::GradScaler scaler({.scaling = false}, device);
  Step step({.model = model, .optimizer = *optimizer, .scaler = scaler, .ranks = ranks}, {.clip = 0.5});
  for (std::int64_t number = 0; number < kSteps; ++number) {
    const core::Batch batch = toy_batch(13, at::kDouble, 31 * number);
    const int rank = ranks.rank(), size = ranks.size();
    core::Batch part = batch.slice(rank * batch.size() / size, (rank + 1) * batch.size() / size);
    step.compute(device::move_batch(std::move(part), device), number, 0);
    step.commit(0.05);
  }
  return weights_of(model);
}

TEST(GpuRanks, TrainAsOneProcess) {
  STOKER_NEEDS_GPU();
  core::SingleRank alone;
  const Weights expected = train(alone, {c10::DeviceType::CUDA, 0});
  const int gpus = device::backend_for(c10::kCUDA).device_count();
  std::printf("  %d ranks, one per GPU\n", gpus);
  std::vector<Weights> found(static_cast<std::size_t>(gpus));
  const auto errors = stoker::testing::run_over_gloo(gpus, [&](core::Communicator& ranks) {
    const auto index = static_cast<c10::DeviceIndex>(ranks.rank());
    found[static_cast<std::size_t>(ranks.rank())] = train(ranks, {c10::DeviceType::CUDA, index});
  });
  for (std::size_t rank = 0; rank < found.size(); ++rank) {
    EXPECT_EQ(errors[rank], "");
    ASSERT_EQ(found[rank].size(), expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i) {
      EXPECT_LE((found[rank][i] - expected[i]).abs().max().item<double>(), 1e-12) << rank << ' ' << i;
      EXPECT_TRUE(at::equal(found[rank][i], found[0][i])) << rank << ' ' << i;
    }
  }
}

// A step with one rank has no exchange, so here it is made by hand: the same bytes as without.
TEST(GpuRanks, OneRankExchangesWithItself) {
  STOKER_NEEDS_GPU();
  const c10::Device device(c10::DeviceType::CUDA, 0);
  const auto computed = [&](RankExchange* exchange, OnGpu& model, at::Tensor& losses) {
    const core::Batch batch = device::move_batch(toy_batch(13, at::kDouble, 3), device);
    core::Normalisers normalisers = model.normalisers(batch);
    if (exchange != nullptr) {
      exchange->normalise(normalisers, batch.global_size());
      exchange->last_pass();
    }
    const core::LossTerms terms = model.loss(model.forward(model.inputs(batch)), batch);
    const core::NormalisedLoss loss = normalise_pass(terms, normalisers, {}, device);
    torch::autograd::backward(loss.sums, loss.gradients);
    losses = loss.parts;
    if (exchange != nullptr) {
      EndWishes wishes;
      EXPECT_TRUE(exchange->finish({}, losses, wishes));
    }
    Weights gradients;
    for (const core::Parameter& each : model.parameters()) {
      gradients.push_back(each.tensor.grad().cpu().clone());
    }
    return gradients;
  };
  OnGpu plain(device);
  at::Tensor plain_losses;
  const Weights expected = computed(nullptr, plain, plain_losses);
  const auto errors = stoker::testing::run_over_gloo(1, [&](core::Communicator& ranks) {
    OnGpu model(device);
    RankExchange exchange(ranks, model);
    at::Tensor losses;
    const Weights found = computed(&exchange, model, losses);
    EXPECT_TRUE(at::equal(losses, plain_losses));
    for (std::size_t i = 0; i < expected.size(); ++i) {
      EXPECT_TRUE(at::equal(found[i], expected[i])) << i;
    }
  });
  EXPECT_EQ(errors[0], "");
}

}  // namespace
}  // namespace stoker::train
