// SPDX-License-Identifier: Apache-2.0
// Several ranks train like one process that cuts its batch into as many microbatches. The weights are the same, with
// dropout and also if a last batch leaves a rank without samples. All ranks end together.
#include <ATen/ops/dropout.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stoker/base/error.h"
#include "stoker/optim/optimizer.h"
#include "stoker/precision/grad_scaler.h"
#include "stoker/train/evaluate.h"
#include "stoker/train/loop.h"
#include "stoker/train/step.h"
#include "support/lockstep_ranks.h"
#include "support/toy_owner.h"
#include "support/toy_trainable.h"

namespace stoker::train {
namespace {

using stoker::testing::LockstepRanks;
using stoker::testing::toy_batch;
using stoker::testing::ToyOwner;
using stoker::testing::ToyTrainable;
using Weights = std::vector<at::Tensor>;

// A chain of two segments, both with dropout.
class Dropping final : public ToyTrainable {
 public:
  [[nodiscard]] int segments() const override { return 2; }
  [[nodiscard]] core::TensorList forward_segment(int segment, core::TensorList values) override {
    const std::size_t first = static_cast<std::size_t>(segment) * 2;
    const at::Tensor dropped = at::dropout(values[0], 0.3, /*train=*/true);
    const at::Tensor y = at::linear(dropped, parameters()[first].tensor, parameters()[first + 1].tensor);
    return {segment == 0 ? at::tanh(y) : y};
  }
};

// Global batches of a short epoch, the last of one sample.
core::Batch global_batch(std::int64_t step) { return toy_batch(step % 4 == 3 ? 1 : 13, at::kDouble, 31 * step); }

core::Batch part_of(const core::Batch& batch, int rank, int ranks) {
  return batch.slice(rank * batch.size() / ranks, (rank + 1) * batch.size() / ranks);
}

constexpr std::int64_t kSteps = 8;

Weights train(core::Communicator& ranks, std::int64_t microbatch) {
  Dropping model;
  const auto optimizer = optim::make_optimizer({.name = "adamw", .weight_decay = 0.05}, model.parameters());
  precision::GradScaler scaler({.scaling = false}, at::kCPU);
  Step step({.model = model, .optimizer = *optimizer, .scaler = scaler, .ranks = ranks}, {.clip = 0.5, .seed = 7});
  for (std::int64_t number = 0; number < kSteps; ++number) {
    step.compute(part_of(global_batch(number), ranks.rank(), ranks.size()), number, microbatch);
    step.commit(0.05);
  }
  Weights weights;
  for (const core::Parameter& each : model.parameters()) {
    weights.push_back(each.tensor.detach().clone());
  }
  return weights;
}

double distance(const Weights& a, const Weights& b) {
  double most = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    most = std::max(most, (a[i] - b[i]).abs().max().item<double>());
  }
  return most;
}

TEST(Ranks, TrainAsOneProcessWithAsManyMicrobatches) {
  core::SingleRank alone;
  const Weights whole = train(alone, 0);
  for (const int ranks : {2, 3}) {
    const Weights expected = train(alone, (13 + ranks - 1) / ranks);
    EXPECT_GT(distance(expected, whole), 1e-6) << "nothing was dropped, or the draws do not depend on the cut";
    std::vector<Weights> found(static_cast<std::size_t>(ranks));
    LockstepRanks(ranks).run([&](core::Communicator& communicator) {
      found[static_cast<std::size_t>(communicator.rank())] = train(communicator, 0);
    });
    for (const Weights& each : found) {
      EXPECT_LE(distance(each, expected), 1e-12) << ranks << " ranks";
    }
  }
}

// Adds the mean of its inputs to a running statistic, like a batch norm.
class Counting final : public ToyTrainable {
 public:
  [[nodiscard]] core::TensorList norm_buffers() const override { return {statistic, batches}; }
  [[nodiscard]] core::TensorList forward_segment(int segment, core::TensorList values) override {
    statistic += values[0].detach().sum();
    batches += 1;
    return ToyTrainable::forward_segment(segment, std::move(values));
  }
  at::Tensor statistic = at::zeros({1}, at::kDouble), batches = at::zeros({1}, at::kLong);
};

TEST(Ranks, StatisticsAreTheMeanOverRanks) {
  const at::Tensor total = global_batch(0)["x"].sum();
  LockstepRanks(3).run([&](core::Communicator& ranks) {
    Counting model;
    const auto optimizer = optim::make_optimizer({.name = "sgd"}, model.parameters());
    precision::GradScaler scaler({.scaling = false}, at::kCPU);
    Step step({.model = model, .optimizer = *optimizer, .scaler = scaler, .ranks = ranks}, {});
    step.compute(part_of(global_batch(0), ranks.rank(), 3), 0, 0);
    step.commit(0.1);
    EXPECT_NEAR(model.statistic.item<double>(), total.item<double>() / 3, 1e-12) << ranks.rank();
    EXPECT_EQ(model.batches.item<std::int64_t>(), 1);
  });
}

// Gradients of half weights are float32, also on a rank without samples.
TEST(Ranks, ARankWithoutSamplesJoinsInTheSameDtype) {
  LockstepRanks(2).run([&](core::Communicator& ranks) {
    ToyTrainable model(at::kBFloat16);
    const auto optimizer = optim::make_optimizer({.name = "sgd"}, model.parameters());
    precision::GradScaler scaler({.scaling = false}, at::kCPU);
    Step step({.model = model, .optimizer = *optimizer, .scaler = scaler, .ranks = ranks}, {});
    step.compute(toy_batch(1, at::kBFloat16).slice(0, ranks.rank()), 0, 0);
    EXPECT_EQ(model.parameters()[0].tensor.grad().scalar_type(), at::kFloat) << ranks.rank();
    EXPECT_GT(model.parameters()[0].tensor.grad().abs().max().item<float>(), 0);
  });
}

// Runs out of memory on one rank, in its first passes with more than `most` samples.
class Hungry final : public ToyTrainable {
 public:
  Hungry(bool here, std::int64_t most) : here_(here), most_(most) {}
  [[nodiscard]] core::TensorList forward_segment(int segment, core::TensorList values) override {
    passes.push_back(values[0].size(0));
    if (here_ && values[0].size(0) > most_) {
      fail<OutOfMemory>("test", "no memory left");
    }
    return ToyTrainable::forward_segment(segment, std::move(values));
  }
  std::vector<std::int64_t> passes;

 private:
  bool here_;
  std::int64_t most_;
};

// All ranks compute the same batch again, in the passes of the rank that ran out of memory.
TEST(Ranks, ARankThatRunsOutOfMemoryShrinksThePassesOfAll) {
  core::SingleRank alone;
  const auto train_one = [](core::Communicator& ranks, Hungry& model) {
    const auto optimizer = optim::make_optimizer({.name = "sgd"}, model.parameters());
    precision::GradScaler scaler({.scaling = false}, at::kCPU);
    Step step({.model = model, .optimizer = *optimizer, .scaler = scaler, .ranks = ranks}, {});
    Recovery recovery({.microbatch = {.asked = 13}});
    for (std::int64_t number = 0; number < 2; ++number) {
      recovery.begin_step(number + 1);
      step.compute(part_of(global_batch(0), ranks.rank(), ranks.size()), number, recovery);
      step.commit(0.1);
    }
    Weights weights;
    for (const core::Parameter& each : model.parameters()) {
      weights.push_back(each.tensor.detach().clone());
    }
    return std::pair(weights, recovery.schedule());
  };
  Hungry whole(false, 0);
  const Weights expected = train_one(alone, whole).first;
  std::vector<Weights> found(2);
  LockstepRanks(2).run([&](core::Communicator& ranks) {
    Hungry model(ranks.rank() == 1, 2);  // parts of 6 and 7 samples, halved twice
    const auto [weights, schedule] = train_one(ranks, model);
    found[static_cast<std::size_t>(ranks.rank())] = weights;
    EXPECT_EQ(memory::schedule_text(schedule), "1:2") << ranks.rank();
    EXPECT_EQ(model.passes.back(), 2) << ranks.rank();
  });
  EXPECT_LE(distance(found[0], expected), 1e-12);
  EXPECT_EQ(distance(found[0], found[1]), 0);
}

// torch would end the process, or wait for ever.
TEST(Ranks, ThatTakeDifferentStepsGetAnError) {
  std::vector<std::string> said(2);
  LockstepRanks(2).run([&](core::Communicator& ranks) {
    ToyTrainable model;
    const auto optimizer = optim::make_optimizer({.name = "sgd"}, model.parameters());
    precision::GradScaler scaler({.scaling = false}, at::kCPU);
    Step step({.model = model, .optimizer = *optimizer, .scaler = scaler, .ranks = ranks}, {});
    try {
      step.compute(part_of(global_batch(0), ranks.rank(), 2), 4 + ranks.rank(), 0);
    } catch (const Error& error) {
      said[static_cast<std::size_t>(ranks.rank())] = error.what();
    }
  });
  EXPECT_THAT(said[0], ::testing::HasSubstr("rank 0 takes step 5, but rank 1 takes step 6"));
  EXPECT_THAT(said[1], ::testing::HasSubstr("rank 1 takes step 6, but rank 0 takes step 5"));
}

TEST(Ranks, TotalsAreThoseOfAllRanksOrNone) {
  for (const bool one_gives_up : {false, true}) {
    LockstepRanks(2).run([&](core::Communicator& ranks) {
      std::vector<core::NamedTensor> mine;
      if (!one_gives_up || ranks.rank() == 0) {
        mine = {{"right", at::full({2}, 1 + ranks.rank(), at::kLong)}};
      }
      const auto totals = sum_over_ranks(mine, ranks);
      ASSERT_EQ(totals.empty(), one_gives_up);
      if (!one_gives_up) {
        EXPECT_TRUE(totals[0].tensor.equal(at::full({2}, 3, at::kLong)));
      }
    });
  }
}

// Returns the same batch again and again.
class Repeating final : public core::BatchSource {
 public:
  Repeating(int rank, int ranks) : rank_(rank), ranks_(ranks) {}
  [[nodiscard]] std::optional<core::Batch> next() override { return part_of(global_batch(0), rank_, ranks_); }

 private:
  int rank_, ranks_;
};

class Steps final : public core::EventEmitter {
 public:
  void emit(core::Event event) override {
    if (const auto* step = std::get_if<core::StepFinished>(&event)) {
      samples.push_back(step->samples);
    }
  }
  std::vector<std::int64_t> samples;
};

TEST(Ranks, EndAfterTheSameStepWhereOneIsTold) {
  std::vector<std::int64_t> ended(2);
  LockstepRanks(2).run([&](core::Communicator& ranks) {
    Dropping model;
    const auto optimizer = optim::make_optimizer({.name = "sgd"}, model.parameters());
    precision::GradScaler scaler({.scaling = false}, at::kCPU);
    Step step({.model = model, .optimizer = *optimizer, .scaler = scaler, .ranks = ranks}, {});
    Progress progress;
    device::ScalarRing ring(at::kCPU, step.scalar_names().size());
    Steps events;
    Repeating source(ranks.rank(), ranks.size());
    FeedWatch feed(source, events);
    ToyOwner owner;
    Plan plan;
    plan.device = "cpu";
    plan.save_every = 3;
    plan.eval_every = 1000;
    owner.on_save = [&](const char*) { owner.stop = owner.stop || ranks.rank() == 1; };  // a signal reaches one rank
    Recovery recovery({.events = &events});
    const LoopParts parts{.source = source,
                          .step = step,
                          .progress = progress,
                          .recovery = recovery,
                          .scalars = ring,
                          .events = events,
                          .feed = feed,
                          .ranks = ranks,
                          .owner = owner};
    EXPECT_EQ(run_loop(parts, plan, 100), LoopEnd::kStopped);
    ended[static_cast<std::size_t>(ranks.rank())] = progress.step;
    EXPECT_THAT(events.samples, ::testing::ElementsAre(13, 13, 13, 13)) << "the samples of all ranks";
  });
  EXPECT_EQ(ended, (std::vector<std::int64_t>{4, 4}));
}

}  // namespace
}  // namespace stoker::train
