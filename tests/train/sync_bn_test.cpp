// SPDX-License-Identifier: Apache-2.0
// Synchronised batch norm in whole steps: ranks train as one process with the whole batch, also uneven, without
// samples, in several passes, and with memory that runs out at any allocation.
#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/tensor.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <random>
#include <vector>

#include "stoker/base/error.h"
#include "stoker/models/builder.h"
#include "stoker/ops/cross_entropy.h"
#include "stoker/optim/optimizer.h"
#include "stoker/precision/grad_scaler.h"
#include "stoker/train/recovery.h"
#include "stoker/train/step.h"
#include "support/fault_allocator.h"
#include "support/gloo_ranks.h"
#include "support/lockstep_ranks.h"

namespace stoker::train {
namespace {

using stoker::testing::FaultAllocator;
using stoker::testing::LockstepRanks;
using stoker::testing::run_over_gloo;
using Values = std::vector<at::Tensor>;

// Two residual-like blocks with batch norms of other widths; ReLU in place.
std::unique_ptr<models::Network> network() {
  models::NetworkBuilder builder(3);
  builder.begin_segment("stem");
  const auto conv1 = builder.conv("conv1", {.in = 3, .out = 6});
  const auto bn1 = builder.batch_norm("bn1", 6);
  builder.end_segment([=](const at::Tensor& x) { return bn1(conv1(x)).relu_(); });
  builder.begin_segment("block");
  const auto conv2 = builder.conv("conv2", {.in = 6, .out = 4});
  const auto bn2 = builder.batch_norm("bn2", 4);
  const auto side = builder.conv("side", {.in = 6, .out = 4, .kernel = 1, .padding = 0});
  const auto bn3 = builder.batch_norm("bn3", 4);
  builder.end_segment([=](const at::Tensor& x) { return bn2(conv2(x)).add_(bn3(side(x))).relu_(); });
  builder.begin_segment("head");
  const auto head = builder.linear("head", 4, 3);
  builder.end_segment([=](const at::Tensor& x) { return head(x.mean({2, 3})); });
  return builder.finish();
}

class Model final : public core::Trainable {
 public:
  Model() : network_(network()) { network_->to(at::kCPU, at::kDouble); }
  [[nodiscard]] const std::vector<core::Parameter>& parameters() const override { return network_->parameters(); }
  [[nodiscard]] const std::vector<core::NamedTensor>& buffers() const override { return network_->buffers(); }
  [[nodiscard]] core::TensorList norm_buffers() const override { return network_->norm_buffers(); }
  [[nodiscard]] core::NormCount norms_by_batch() const override { return network_->norms_by_batch(); }
  void synchronise_norms(core::NormExchange* ranks) override { network_->synchronise_norms(ranks); }
  [[nodiscard]] core::TensorList inputs(const core::Batch& batch) const override { return {batch["x"]}; }
  [[nodiscard]] int segments() const override { return network_->segments(); }
  [[nodiscard]] core::TensorList forward_segment(int segment, core::TensorList inputs) override {
    return network_->forward_segment(segment, std::move(inputs));
  }
  [[nodiscard]] bool draws(int) const override { return false; }
  [[nodiscard]] core::LossTerms loss(const core::TensorList& outputs, const core::Batch& batch) const override {
    return {{"loss", 1, ops::cross_entropy_sum(outputs[0], batch["y"])}};
  }
  [[nodiscard]] bool counts_samples() const override { return true; }

 private:
  std::unique_ptr<models::Network> network_;
};

core::Batch global_batch(std::int64_t number, std::int64_t size) {
  std::vector<std::int64_t> indices(static_cast<std::size_t>(size));
  core::Batch batch({0, number}, std::move(indices));
  batch.set("x", at::arange(size * 3 * 25, at::kDouble).mul(0.7).add(11 * number).sin().reshape({size, 3, 5, 5}));
  batch.set("y", at::arange(size).add(number).remainder(3));
  return batch;
}

core::Batch part_of(const core::Batch& batch, const core::Communicator& ranks) {
  const int rank = ranks.rank(), size = ranks.size();
  return batch.slice(rank * batch.size() / size, (rank + 1) * batch.size() / size);
}

// Weights, then running statistics.
Values values_of(const core::Trainable& model) {
  Values all;
  for (const core::Parameter& each : model.parameters()) {
    all.push_back(each.tensor.detach().clone());
  }
  for (const at::Tensor& each : model.norm_buffers()) {
    all.push_back(each.clone());
  }
  return all;
}

struct Case {
  std::vector<std::int64_t> sizes;  // of the global batches
  std::int64_t microbatch = 0;
  bool sync = true;
};

// A model with all that trains it.
class Training {
 public:
  Training(core::Communicator& ranks, bool sync)
      : ranks_(ranks),
        optimizer_(optim::make_optimizer({.name = "sgd"}, model_.parameters())),
        step_({.model = model_, .optimizer = *optimizer_, .scaler = scaler_, .ranks = ranks}, {.sync_norms = sync}) {}
  void compute(const core::Batch& whole, std::int64_t number, memory::BatchSplit& split) {
    step_.compute(part_of(whole, ranks_), number, split);
  }
  void commit() { step_.commit(0.1); }
  [[nodiscard]] Values values() const { return values_of(model_); }

 private:
  core::Communicator& ranks_;
  Model model_;
  std::unique_ptr<optim::Optimizer> optimizer_;
  precision::GradScaler scaler_{{.scaling = false}, at::kCPU};
  Step step_;
};

Values train(core::Communicator& ranks, const Case& how) {
  Training training(ranks, how.sync);
  memory::FixedSplit split(how.microbatch);
  std::int64_t number = 0;
  for (const std::int64_t size : how.sizes) {
    training.compute(global_batch(number, size), number, split);
    training.commit();
    ++number;
  }
  return training.values();
}

double distance(const Values& a, const Values& b) {
  double most = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    most = std::max(most, (a[i] - b[i]).abs().max().item<double>());
  }
  return most;
}

// Of each rank.
std::vector<Values> trained(int ranks, const Case& how) {
  std::vector<Values> found(static_cast<std::size_t>(ranks));
  for (const std::string& error : run_over_gloo(ranks, [&](core::Communicator& group) {
         found[static_cast<std::size_t>(group.rank())] = train(group, how);
       })) {
    EXPECT_EQ(error, "");
  }
  return found;
}

TEST(SyncBn, RanksTrainAsOneProcess) {
  const Case how{.sizes = {13, 8, 2, 13, 13}};  // of 2 samples some ranks have none
  core::SingleRank alone;
  const Values expected = train(alone, how);
  for (const int ranks : {2, 3, 4}) {
    const std::vector<Values> found = trained(ranks, how);
    for (const Values& each : found) {
      EXPECT_LE(distance(each, expected), 1e-12) << ranks;
      EXPECT_EQ(distance(each, found[0]), 0) << ranks << ": ranks have other values";
    }
    EXPECT_GT(distance(trained(ranks, {.sizes = how.sizes, .sync = false})[0], expected), 1e-4)
        << "each rank's own statistics give the same";
  }
}

// Ranks of 6 and 7 samples in passes of at most 3 take 3 passes each: statistics are those of one process that has in
// its passes what the ranks have together. And a rank with fewer samples than passes.
TEST(SyncBn, RanksTakeEquallyManyPasses) {
  const at::Tensor order = at::tensor({0, 1, 6, 7, 2, 3, 8, 9, 4, 5, 10, 11, 12}, at::kLong);
  core::SingleRank alone;
  Training one(alone, /*sync=*/true);
  memory::FixedSplit split(5);  // 4, 4 and 5 samples
  core::Batch batch = global_batch(0, 13);
  for (const char* name : {"x", "y"}) {
    batch.set(name, batch[name].index_select(0, order));
  }
  one.compute(batch, 0, split);
  one.commit();
  for (const Values& each : trained(2, {{13}, 3})) {
    EXPECT_LE(distance(each, one.values()), 1e-12);
  }
  const std::vector<Values> found = trained(2, {{3, 5}, 1}), again = trained(2, {{3, 5}, 1});
  EXPECT_EQ(distance(found[0], found[1]), 0);
  EXPECT_EQ(distance(found[0], again[0]), 0);
}

// Of each step, one allocation of one rank fails: nobody waits for ever, and all compute the same batch again.
TEST(SyncBn, SurvivesMemoryThatRunsOutAnywhere) {
  constexpr std::int64_t kFailures = 100, kSize = 8;
  std::vector<Values> found(2);
  std::int64_t planted = 0;
  std::optional<FaultAllocator> faults;  // of rank 1's thread; Gloo's threads call it until they end
  const auto errors = run_over_gloo(2, [&](core::Communicator& ranks) {
    Training training(ranks, /*sync=*/true);
    const bool fails = ranks.rank() == 1;
    std::mt19937 random(5);  // NOLINT: the same places in each run
    std::int64_t most = 1;   // allocations of a step
    if (fails) {
      faults.emplace(FaultAllocator::Threads::kMaker);
    }
    for (std::int64_t number = 0; number < kFailures; ++number) {
      Recovery recovery({.microbatch = {.asked = kSize, .smallest = 2}});
      recovery.begin_step(number + 1);
      const core::Batch batch = global_batch(number, kSize);
      const std::int64_t before = fails ? faults->allocations() : 0;
      if (fails && number > 0) {
        faults->fail_at(1 + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(most)));
      }
      training.compute(batch, number, recovery);
      if (fails) {
        planted += number > 0 && !faults->armed() ? 1 : 0;
        most = number == 0 ? faults->allocations() - before : most;
        faults->fail_at(0);
      }
      training.commit();
    }
    found[static_cast<std::size_t>(ranks.rank())] = training.values();
  });
  ASSERT_THAT(errors, ::testing::Each(""));
  EXPECT_GT(planted, kFailures / 2) << "of the allocations that should fail";
  EXPECT_EQ(distance(found[0], found[1]), 0);
}

TEST(SyncBn, IsRefusedWhereItWouldBeWrong) {
  LockstepRanks(2).run([](core::Communicator& ranks) {
    Model model;
    const auto optimizer = optim::make_optimizer({.name = "sgd"}, model.parameters());
    precision::GradScaler scaler({.scaling = false}, at::kCPU);
    const StepParts parts{.model = model, .optimizer = *optimizer, .scaler = scaler, .ranks = ranks};
    StepOptions options{.sync_norms = true};
    options.recompute = memory::parse_recompute("block");
    EXPECT_THROW(Step(parts, options), ConfigError);
  });
}

}  // namespace
}  // namespace stoker::train
