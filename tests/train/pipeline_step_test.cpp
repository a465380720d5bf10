// SPDX-License-Identifier: Apache-2.0
// Steps on pipelines of 2 and 3 stages, alone and as replicas, against the same ranks without stages: weights, running
// statistics, averages, the optimizer's state and what a step reports. A stage whose gradients are not finite, or whose
// memory runs out at any of many allocations, changes the step of all.
#include <ATen/TensorOperators.h>
#include <ATen/ops/batch_norm.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "stoker/base/error.h"
#include "stoker/optim/ema.h"
#include "stoker/optim/optimizer.h"
#include "stoker/parallel/stages.h"
#include "stoker/precision/grad_scaler.h"
#include "stoker/train/recovery.h"
#include "stoker/train/step.h"
#include "support/fault_allocator.h"
#include "support/gloo_ranks.h"
#include "support/lockstep_ranks.h"
#include "support/pipeline_chain.h"

namespace stoker::train {
namespace {

using stoker::testing::FaultAllocator;
using stoker::testing::LockstepRanks;
using stoker::testing::PipelineChain;
using stoker::testing::run_over_gloo;
using stoker::testing::toy_batch;
using ::testing::HasSubstr;
using Values = std::map<std::string, at::Tensor>;

constexpr std::int64_t kSteps = 12;

// The chain with a batch norm behind segment 1 and one behind segment 3, whose statistics are views of one tensor.
class NormedChain final : public PipelineChain {
 public:
  explicit NormedChain(bool drops = true) : PipelineChain(drops), parameters_(PipelineChain::parameters()) {
    const auto exact = at::TensorOptions(at::kDouble);
    statistics_ = at::zeros({32}, exact);
    for (const int norm : {0, 1}) {
      const std::string name = norm == 0 ? "first_norm." : "second_norm.";
      parameters_.push_back({name + "weight", at::ones({8}, exact).set_requires_grad(true), core::Role::kNorm});
      parameters_.back().segments = {1 + 2 * norm};
      buffers_.push_back({name + "running_mean", statistics_.narrow(0, 16 * norm, 8)});
      buffers_.push_back({name + "running_var", statistics_.narrow(0, 16 * norm + 8, 8).fill_(1)});
    }
  }
  [[nodiscard]] const std::vector<core::Parameter>& parameters() const override { return parameters_; }
  [[nodiscard]] const std::vector<core::NamedTensor>& buffers() const override { return buffers_; }
  [[nodiscard]] core::TensorList norm_buffers() const override { return {statistics_}; }
  [[nodiscard]] core::TensorList forward_segment(int segment, core::TensorList values) override {
    values = PipelineChain::forward_segment(segment, std::move(values));
    if (segment == 1 || segment == 3) {
      const std::size_t norm = segment / 2;
      values[0] = at::batch_norm(values[0], parameters_[6 + norm].tensor, {}, buffers_[2 * norm].tensor,
                                 buffers_[2 * norm + 1].tensor, /*training=*/true, 0.1, 1e-5, false);
    }
    if (segment == ill_segment && ill_segment >= 0) {  // a value of 0, whose gradient is not finite
      values[0] = values[0] + (values[0] * 0).abs().sqrt();
    }
    return values;
  }

  int ill_segment = -1;

 private:
  std::vector<core::Parameter> parameters_;
  std::vector<core::NamedTensor> buffers_;
  at::Tensor statistics_;
};

struct Case {
  const char* name;
  const char* optimizer;
  double clip, ema;
  std::int64_t microbatch;
};

constexpr Case kCases[] = {
    {"Sgd", "sgd", 0, 0, 3}, {"AdamWClippedAveraged", "adamw", 0.3, 0.9, 3}, {"SgdInOnePass", "sgd", 0.3, 0, 0}};

// Of 13 samples; at times of 2, which one pipeline computes: batch norm needs them together.
core::Batch part_of(std::int64_t number, int replica, int replicas) {
  const core::Batch batch = toy_batch(number % 5 == 4 ? 2 : 13, at::kDouble, 31 * number);
  if (batch.size() == 2) {
    return batch.slice(0, replica + 1 == replicas ? 2 : 0);
  }
  return batch.slice(replica * batch.size() / replicas, (replica + 1) * batch.size() / replicas);
}

// A model with all that trains it. firsts: empty: without stages.
class Training {
 public:
  Training(core::Communicator& ranks, const Case& how, const std::vector<int>& firsts, bool drops = true)
      : how_(how),
        model_(drops),
        stages_(firsts.empty() ? nullptr : std::make_unique<parallel::Stages>(ranks, model_, firsts)),
        replica_(ranks.rank() / (static_cast<int>(firsts.size()) + 1)),
        replicas_(ranks.size() / (static_cast<int>(firsts.size()) + 1)),
        optimizer_(optim::make_optimizer({.name = how.optimizer, .eps = 1e-3},
                                         stages_ ? stages_->own_parameters() : model_.parameters())),
        ema_(how.ema > 0 ? std::make_unique<optim::Ema>(model_.parameters(), model_.norm_buffers(), how.ema) : nullptr),
        step_({.model = model_,
               .optimizer = *optimizer_,
               .scaler = scaler_,
               .ranks = ranks,
               .ema = ema_.get(),
               .stages = stages_.get()},
              {.clip = how.clip, .seed = 7}) {}

  void train(std::int64_t number) {
    step_.compute(part_of(number, replica_, replicas_), number, how_.microbatch);
    step_.commit(0.02);
  }
  [[nodiscard]] core::Batch batch(std::int64_t number) const { return part_of(number, replica_, replicas_); }
  // A collective call.
  [[nodiscard]] Values values() {
    if (stages_) {
      core::TensorList weights;
      for (const core::Parameter& each : model_.parameters()) {
        weights.push_back(each.tensor);
      }
      stages_->share(weights, model_.norm_buffers());
      if (ema_) {
        const auto middle = ema_->averages().begin() + std::ssize(weights);
        stages_->share({ema_->averages().begin(), middle}, {middle, ema_->averages().end()});
      }
    }
    Values values;
    for (const core::Parameter& each : model_.parameters()) {
      values[each.name] = each.tensor.detach().clone();
    }
    values["statistics"] = model_.norm_buffers()[0].clone();
    for (std::size_t i = 0; ema_ && i < ema_->averages().size(); ++i) {
      values["average " + std::to_string(i)] = ema_->averages()[i].clone();
    }
    values["scalars"] = step_.scalars().clone();
    return values;
  }
  // Of the first stage. A collective call.
  [[nodiscard]] Values optimizer_state() {
    core::State state;
    optimizer_->save_state(state);
    return stages_ ? stages_->collect(std::move(state)).tensors : state.tensors;
  }
  [[nodiscard]] NormedChain& model() { return model_; }
  [[nodiscard]] Step& step() { return step_; }

 private:
  const Case& how_;
  NormedChain model_;
  std::unique_ptr<parallel::Stages> stages_;
  int replica_, replicas_;
  std::unique_ptr<optim::Optimizer> optimizer_;
  precision::GradScaler scaler_{{.scaling = false}, at::kCPU};
  std::unique_ptr<optim::Ema> ema_;
  Step step_;
};

void expect_close(const Values& expected, const Values& found, double tolerance) {
  ASSERT_EQ(expected.size(), found.size());
  for (const auto& [name, tensor] : expected) {
    ASSERT_TRUE(found.contains(name)) << name;
    const double size = std::max(1.0, tensor.abs().max().item<double>());
    const double single = tensor.scalar_type() == at::kFloat ? 1e-6 : 0;  // what is reported
    EXPECT_LE((tensor - found.at(name)).abs().max().item<double>() / size, std::max(tolerance, single)) << name;
  }
}

struct Trained {
  std::vector<Values> values;  // of each rank
  Values optimizer;            // of rank 0
};

Trained train(int ranks, const Case& how, const std::vector<int>& firsts, std::int64_t ill_step = -1) {
  Trained result{std::vector<Values>(static_cast<std::size_t>(ranks)), {}};
  LockstepRanks(ranks).run([&](core::Communicator& all) {
    Training training(all, how, firsts);
    for (std::int64_t number = 0; number < kSteps; ++number) {
      training.model().ill_segment = number == ill_step ? 1 : -1;
      training.train(number);
      EXPECT_EQ(training.step().scalars()[-1].item<float>(), number == ill_step ? 1 : 0) << "steps skipped";
    }
    result.values[static_cast<std::size_t>(all.rank())] = training.values();
    Values state = training.optimizer_state();
    if (all.rank() == 0) {
      result.optimizer = std::move(state);
    }
  });
  return result;
}

class PipelineStep : public ::testing::TestWithParam<Case> {};

INSTANTIATE_TEST_SUITE_P(All, PipelineStep, ::testing::ValuesIn(kCases),
                         [](const auto& each) { return std::string(each.param.name); });

TEST_P(PipelineStep, TrainsAsTheSameRanksWithoutStages) {
  for (const int replicas : {1, 2, 3}) {
    const Trained expected = train(replicas, GetParam(), {});
    for (const std::vector<int>& firsts : {std::vector{3}, {1}, {1, 3}}) {
      SCOPED_TRACE(fmt::format("{} replicas, stages at {}", replicas, fmt::join(firsts, ", ")));
      const Trained found = train(replicas * (static_cast<int>(firsts.size()) + 1), GetParam(), firsts);
      for (const Values& each : found.values) {
        expect_close(expected.values[0], each, 1e-11);
      }
      expect_close(expected.optimizer, found.optimizer, 1e-11);
    }
  }
}

// The gradient of the first stage alone.
TEST_P(PipelineStep, AGradientThatIsNotFiniteSkipsTheStepOfAllStages) {
  const Trained expected = train(1, GetParam(), {}, 3);
  const Trained found = train(3, GetParam(), {2, 4}, 3);
  for (const Values& each : found.values) {
    expect_close(expected.values[0], each, 1e-11);
  }
}

// Of each step, one allocation of one rank fails: all compute the same batch again, in smaller passes. At times a rank
// begins a step with smaller ones than the others.
TEST(PipelineStep, SurvivesMemoryThatRunsOutAnywhere) {
  constexpr std::int64_t kFailures = 100;
  for (const int failing : {0, 1, 3}) {
    SCOPED_TRACE(failing);
    std::vector<Values> found(4);
    std::vector<std::int64_t> limits;  // that each step ended with
    std::optional<FaultAllocator> faults;
    std::int64_t planted = 0;
    const auto errors = run_over_gloo(4, [&](core::Communicator& ranks) {
      Training training(ranks, kCases[0], {3}, /*drops=*/false);
      const bool fails = ranks.rank() == failing;
      std::mt19937 random(5);  // NOLINT: the same places in each run
      std::int64_t most = 1;   // allocations of a step
      if (fails) {
        faults.emplace(FaultAllocator::Threads::kMaker);
      }
      for (std::int64_t number = 0; number < kFailures; ++number) {
        const bool asks_less = number % 7 == 3 && ranks.rank() == 2;
        Recovery recovery({.microbatch = {.asked = asks_less ? 4 : 13, .smallest = 2}});
        recovery.begin_step(number + 1);
        const core::Batch batch = training.batch(number);
        const std::int64_t before = fails ? faults->allocations() : 0;
        if (fails && number > 0 && batch.size() > 2) {
          faults->fail_at(1 + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(most)));
        }
        training.step().compute(batch, number, recovery);
        if (fails) {
          planted += number > 0 && batch.size() > 2 && !faults->armed() ? 1 : 0;
          most = number == 0 ? faults->allocations() - before : most;
          faults->fail_at(0);
        }
        if (ranks.rank() == 0) {
          limits.push_back(recovery.limit());
        }
        training.step().commit(0.02);
      }
      found[static_cast<std::size_t>(ranks.rank())] = training.values();
    });
    ASSERT_THAT(errors, ::testing::Each(""));
    EXPECT_GT(planted, kFailures / 2) << "of the allocations that should fail";
    for (const Values& each : found) {
      expect_close(found[0], each, 0);
    }
    Values expected;
    LockstepRanks(2).run([&](core::Communicator& ranks) {  // the same passes, and no failure
      Training training(ranks, kCases[0], {}, /*drops=*/false);
      for (std::int64_t number = 0; number < kFailures; ++number) {
        Recovery split({.microbatch = {.asked = limits[static_cast<std::size_t>(number)], .smallest = 2}});
        training.step().compute(training.batch(number), number, split);
        training.step().commit(0.02);
      }
      expected = training.values();
    });
    expect_close(expected, found[0], 1e-9);
  }
}

TEST(PipelineStep, AFailingStageEndsAll) {
  const auto errors = run_over_gloo(3, [&](core::Communicator& ranks) {
    Training training(ranks, kCases[0], {1, 3}, /*drops=*/false);
    training.model().on_forward = [&](int segment) {
      if (segment == 2) {
        fail<DataError>("test", "stage 2 fails");
      }
    };
    training.train(0);
  });
  EXPECT_THAT(errors, ::testing::Each(HasSubstr("stage 2 fails")));
}

std::string refusal(int ranks, const std::vector<int>& firsts, core::Trainable& model) {
  std::string text;
  LockstepRanks(ranks).run([&](core::Communicator& all) {
    try {
      const parallel::Stages stages(all, model, firsts);
    } catch (const ConfigError& error) {
      text = error.what();
    }
  });
  return text;
}

class OfNoModule final : public PipelineChain {
 public:
  OfNoModule() : buffers_{{"mean", statistics_}} {}
  [[nodiscard]] const std::vector<core::NamedTensor>& buffers() const override { return buffers_; }
  [[nodiscard]] core::TensorList norm_buffers() const override { return {statistics_}; }

 private:
  at::Tensor statistics_ = at::zeros({8});
  std::vector<core::NamedTensor> buffers_;
};

class Tied final : public PipelineChain {
 public:
  Tied() : parameters_(PipelineChain::parameters()) { parameters_[2].segments = {0, 5}; }
  [[nodiscard]] const std::vector<core::Parameter>& parameters() const override { return parameters_; }

 private:
  std::vector<core::Parameter> parameters_;
};

TEST(Stages, RefuseWhatTheyCannotCut) {
  PipelineChain chain;
  EXPECT_THAT(refusal(3, {3}, chain), HasSubstr("3 ranks are no whole number of pipelines of 2 stages"));
  EXPECT_THAT(refusal(2, {6}, chain), HasSubstr("cannot begin at segments 0, 6 of a model with 6"));
  EXPECT_THAT(refusal(3, {2, 2}, chain), HasSubstr("cannot begin at segments 0, 2, 2"));
  Tied tied;
  EXPECT_THAT(refusal(2, {3}, tied), HasSubstr("segments of stage 1 and of stage 2 use \"head.weight\""));
  OfNoModule other;
  EXPECT_THAT(refusal(2, {3}, other), HasSubstr("not known which stage computes it"));
}

}  // namespace
}  // namespace stoker::train
