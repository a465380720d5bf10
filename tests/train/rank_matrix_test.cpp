// SPDX-License-Identifier: Apache-2.0
// Weights after 20 steps on 1, 2 and 4 ranks against one process with the whole batch: uneven batches, accumulation,
// clipping, label smoothing, two loss terms with different normalisers, averages, AdamW and SGD; and on other ranks
// from step to step. Over c10d's Gloo: equal bytes when it is repeated, and memory that runs out at any allocation.
#include <ATen/TensorOperators.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/isnan.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "stoker/optim/ema.h"
#include "stoker/optim/optimizer.h"
#include "stoker/precision/grad_scaler.h"
#include "stoker/train/recovery.h"
#include "stoker/train/step.h"
#include "support/fault_allocator.h"
#include "support/gloo_ranks.h"
#include "support/lockstep_ranks.h"
#include "support/toy_trainable.h"

namespace stoker::train {
namespace {

using stoker::testing::FaultAllocator;
using stoker::testing::LockstepRanks;
using stoker::testing::run_over_gloo;
using stoker::testing::toy_batch;
using stoker::testing::ToyTrainable;
using Weights = std::vector<at::Tensor>;

constexpr std::int64_t kSteps = 20;

// One loss term over samples, which ranks count without a message.
class OneTerm final : public ToyTrainable {
 public:
  using ToyTrainable::ToyTrainable;
  [[nodiscard]] std::vector<std::string> loss_names() const override { return {"cross_entropy"}; }
  [[nodiscard]] core::Normalisers normalisers(const core::Batch& batch) const override {
    return core::Trainable::normalisers(batch);
  }
  [[nodiscard]] bool counts_samples() const override { return true; }
  [[nodiscard]] core::LossTerms loss(const core::TensorList& outputs, const core::Batch& batch) const override {
    return {{"cross_entropy", 1, ops::cross_entropy_sum(outputs[0], batch["y"], 0.1)}};
  }
};

struct Case {
  const char* name;
  const char* optimizer;
  double clip;
  double ema;
  std::int64_t microbatch;
  bool two_terms;
};

constexpr Case kCases[] = {
    {"AdamW", "adamw", 0, 0, 0, true},
    {"AdamWOneTerm", "adamw", 0, 0, 0, false},
    {"Sgd", "sgd", 0, 0, 0, true},
    {"SgdClipped", "sgd", 0.3, 0, 0, true},
    {"SgdAccumulated", "sgd", 0, 0, 2, true},
    {"AdamWAll", "adamw", 0.3, 0.9, 2, true},
    {"SgdAll", "sgd", 0.3, 0.9, 3, false},
};

// Of 13 samples, and at times of fewer than there are ranks.
core::Batch global_batch(std::int64_t number, at::ScalarType type) {
  return toy_batch(number % 5 == 4 ? 3 : 13, type, 31 * number);
}

core::Batch part_of(const core::Batch& batch, const core::Communicator& ranks) {
  const int rank = ranks.rank(), size = ranks.size();
  return batch.slice(rank * batch.size() / size, (rank + 1) * batch.size() / size);
}

// A model with all that trains it.
class Training {
 public:
  Training(core::Communicator& ranks, const Case& how, at::ScalarType type)
      : ranks_(ranks),
        how_(how),
        type_(type),
        model_(how.two_terms ? std::make_unique<ToyTrainable>(type) : std::make_unique<OneTerm>(type)),
        // A larger eps in float32: AdamW turns the rounding of gradients near zero into whole steps.
        optimizer_(optim::make_optimizer({.name = how.optimizer, .eps = type == at::kFloat ? 1e-3 : 1e-8},
                                         model_->parameters())),
        ema_(how.ema > 0 ? std::make_unique<optim::Ema>(model_->parameters(), core::TensorList{}, how.ema) : nullptr),
        step_({.model = *model_, .optimizer = *optimizer_, .scaler = scaler_, .ranks = ranks, .ema = ema_.get()},
              {.clip = how.clip, .seed = 7}) {}

  void train(std::int64_t from, std::int64_t to) {
    for (std::int64_t number = from; number < to; ++number) {
      const core::Batch part = part_of(global_batch(number, type_), ranks_);
      step_.compute(part, number, how_.microbatch);
      step_.commit(0.02);
    }
  }
  [[nodiscard]] Weights weights() const {
    Weights all;
    for (const core::Parameter& each : model_->parameters()) {
      all.push_back(each.tensor.detach().clone());
    }
    core::State state;
    if (ema_) {
      ema_->save_state(state);
    }
    for (const auto& [name, tensor] : state.tensors) {
      all.push_back(tensor.clone());
    }
    return all;
  }
  [[nodiscard]] core::State state() const {
    core::State live, state;
    optimizer_->save_state(live);
    step_.save_state(live);
    if (ema_) {
      ema_->save_state(live);
    }
    state.numbers = live.numbers;
    for (const auto& [name, tensor] : live.tensors) {
      state.tensors[name] = tensor.clone();
    }
    for (const core::Parameter& each : model_->parameters()) {
      state.tensors["model." + each.name] = each.tensor.detach().clone();
    }
    return state;
  }
  void load(const core::State& state) {
    for (const core::Parameter& each : model_->parameters()) {
      core::restore_tensor(each.tensor.detach(), state, "model." + each.name);
    }
    optimizer_->load_state(state);
    step_.load_state(state);
    if (ema_) {
      ema_->load_state(state);
    }
  }
  [[nodiscard]] Step& step() { return step_; }

 private:
  core::Communicator& ranks_;
  const Case& how_;
  at::ScalarType type_;
  std::unique_ptr<ToyTrainable> model_;
  std::unique_ptr<optim::Optimizer> optimizer_;
  precision::GradScaler scaler_{{.scaling = false}, at::kCPU};
  std::unique_ptr<optim::Ema> ema_;
  Step step_;
};

// Of the largest value of each tensor.
double distance(const Weights& a, const Weights& b) {
  double most = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double size = a[i].abs().max().item<double>();
    most = std::max(most, (a[i] - b[i]).abs().max().item<double>() / (size > 0 ? size : 1));
  }
  return most;
}

class RankMatrix : public ::testing::TestWithParam<Case> {};

INSTANTIATE_TEST_SUITE_P(All, RankMatrix, ::testing::ValuesIn(kCases),
                         [](const auto& each) { return std::string(each.param.name); });

TEST_P(RankMatrix, TrainsAsOneProcess) {
  for (const at::ScalarType type : {at::kDouble, at::kFloat}) {
    core::SingleRank alone;
    Case whole = GetParam();
    whole.microbatch = 0;
    Training one(alone, whole, type);
    const Weights before = one.weights();
    one.train(0, kSteps);
    const Weights expected = one.weights();
    EXPECT_GT(distance(before, expected), 0.01) << "nothing was learned";
    for (const int size : {1, 2, 4}) {
      std::vector<Weights> found(static_cast<std::size_t>(size));
      LockstepRanks(size).run([&](core::Communicator& ranks) {
        Training training(ranks, GetParam(), type);
        training.train(0, kSteps);
        found[static_cast<std::size_t>(ranks.rank())] = training.weights();
      });
      for (const Weights& each : found) {
        EXPECT_LE(distance(expected, each), type == at::kDouble ? 1e-12 : 1e-5) << size << " ranks";
        EXPECT_EQ(distance(found[0], each), 0);
      }
    }
  }
}

TEST_P(RankMatrix, GoesOnWithOtherRanks) {
  core::SingleRank alone;
  Case whole = GetParam();
  whole.microbatch = 0;
  Training one(alone, whole, at::kDouble);
  one.train(0, kSteps);
  core::State state;
  Weights last;
  std::int64_t from = 0;
  for (const int size : {2, 1, 4, 2}) {
    core::State next;
    LockstepRanks(size).run([&](core::Communicator& ranks) {
      Training training(ranks, GetParam(), at::kDouble);
      if (from > 0) {
        training.load(state);
      }
      training.train(from, from + kSteps / 4);
      if (ranks.rank() == 0) {
        next = training.state();
        last = training.weights();
      }
    });
    state = std::move(next);
    from += kSteps / 4;
  }
  EXPECT_LE(distance(one.weights(), last), 1e-10);
}

TEST(RealRanks, RepeatTheirBytes) {
  for (const int size : {2, 3}) {
    std::vector<Weights> found;
    for (int repeat = 0; repeat < 2; ++repeat) {
      const auto errors = run_over_gloo(size, [&](core::Communicator& ranks) {
        Training training(ranks, kCases[5], at::kFloat);
        training.train(0, kSteps);
        if (ranks.rank() == 0) {
          found.push_back(training.weights());
        }
      });
      EXPECT_THAT(errors, ::testing::Each(""));
    }
    ASSERT_EQ(found.size(), 2);
    EXPECT_EQ(distance(found[0], found[1]), 0);
  }
}

// Of each step, one allocation of one rank fails: all compute the same batch again.
TEST(RealRanks, SurviveMemoryThatRunsOutAnywhere) {
  constexpr std::int64_t kFailures = 200;
  core::SingleRank alone;
  Case plain = kCases[2];
  Training one(alone, plain, at::kDouble);
  one.train(0, kFailures);
  std::vector<Weights> found(2);
  std::int64_t planted = 0;
  std::optional<FaultAllocator> faults;  // of rank 1's thread; Gloo's threads call it until they end
  const auto errors = run_over_gloo(2, [&](core::Communicator& ranks) {
    Training training(ranks, plain, at::kDouble);
    const bool fails = ranks.rank() == 1;
    std::mt19937 random(5);  // NOLINT: the same places in each run
    std::int64_t most = 1;   // allocations of a step
    if (fails) {
      faults.emplace(FaultAllocator::Threads::kMaker);
    }
    for (std::int64_t number = 0; number < kFailures; ++number) {
      Recovery recovery({.microbatch = {.asked = 13}});
      recovery.begin_step(number + 1);
      const core::Batch part = part_of(global_batch(number, at::kDouble), ranks);
      const std::int64_t before = fails ? faults->allocations() : 0;
      if (fails && number > 0) {
        faults->fail_at(1 + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(most)));
      }
      training.step().compute(part, number, recovery);
      if (fails) {
        planted += number > 0 && !faults->armed() ? 1 : 0;
        most = number == 0 ? faults->allocations() - before : most;
        faults->fail_at(0);
      }
      training.step().commit(0.02);
    }
    found[static_cast<std::size_t>(ranks.rank())] = training.weights();
  });
  ASSERT_THAT(errors, ::testing::Each(""));
  EXPECT_GT(planted, kFailures / 2) << "of the allocations that should fail";
  EXPECT_EQ(distance(found[0], found[1]), 0);
  EXPECT_LE(distance(one.weights(), found[0]), 1e-10);
}

}  // namespace
}  // namespace stoker::train
