// SPDX-License-Identifier: Apache-2.0
// Property: where sums have no rounding, because all numbers are small multiples of a power of two, any split of a
// batch gives the same bits. So any difference is an error of accumulation: in gradients, clipping, half weights, and
// around an overflow of the gradient scaler in one of the passes.
#include <ATen/TensorOperators.h>
#include <ATen/ops/dropout.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/rand.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <random>

#include "stoker/optim/ema.h"
#include "stoker/optim/optimizer.h"
#include "stoker/precision/grad_scaler.h"
#include "stoker/precision/policy.h"
#include "stoker/train/step.h"
#include "support/lockstep_ranks.h"

namespace stoker::train {
namespace {

using stoker::testing::LockstepRanks;
using Weights = std::vector<at::Tensor>;

constexpr std::int64_t kWidth = 8;
constexpr double kTotal = 64;  // the sum of the samples' weights: dividing by it only moves the point

constexpr double kScale = 0x1p20;

// The weighted mean of (w . x - y)^2, with dropout of a half if asked for: it only doubles what it keeps.
class Squares final : public core::Trainable {
 public:
  explicit Squares(bool drops = false) : drops_(drops) {
    const at::Tensor w = at::full({kWidth}, 1, at::kFloat);
    w[1] = -0.5;
    w[4] = 2;
    parameters_ = {{"w", w.set_requires_grad(true), core::Role::kLinear}};
  }
  [[nodiscard]] const std::vector<core::Parameter>& parameters() const override { return parameters_; }
  [[nodiscard]] core::TensorList inputs(const core::Batch& batch) const override { return {batch["x"]}; }
  [[nodiscard]] bool draws(int) const override { return drops_; }
  [[nodiscard]] core::TensorList forward_segment(int, core::TensorList x) override {
    const at::Tensor kept = drops_ ? at::dropout(x[0], 0.5, /*train=*/true) : x[0];
    // No matrix product: some CPUs sum those of half types in halves.
    return {(kept.to(parameters_[0].tensor.scalar_type()) * parameters_[0].tensor).sum(1)};
  }
  [[nodiscard]] core::Normalisers normalisers(const core::Batch& batch) const override {
    return batch["weight"].sum().to(at::kDouble).reshape({1});
  }
  [[nodiscard]] core::LossTerms loss(const core::TensorList& outputs, const core::Batch& batch) const override {
    const at::Tensor error = outputs[0].to(at::kFloat) - batch["y"];
    return {{"loss", 1, (error.square() * batch["weight"]).sum()}};
  }

 private:
  std::vector<core::Parameter> parameters_;
  bool drops_;
};

// Whole numbers: x within ±most_x, y within ±9, weights 0 to 2 but for the last sample, which makes their sum kTotal.
core::Batch whole_numbers(std::int64_t rows, unsigned seed, std::int64_t most_x = 4, bool weighted = true) {
  std::mt19937 random(seed);
  const auto within = [&](std::int64_t most) {
    return static_cast<float>(static_cast<std::int64_t>(random() % static_cast<unsigned>(2 * most + 1)) - most);
  };
  const at::Tensor x = at::empty({rows, kWidth}), y = at::empty({rows}), weight = at::full({rows}, 1, at::kFloat);
  std::generate_n(x.mutable_data_ptr<float>(), x.numel(), [&] { return within(most_x); });
  std::generate_n(y.mutable_data_ptr<float>(), rows, [&] { return within(9); });
  if (weighted) {
    std::generate_n(weight.mutable_data_ptr<float>(), rows, [&] { return within(1) + 1; });
    weight.mutable_data_ptr<float>()[rows - 1] += static_cast<float>(kTotal) - weight.sum().item<float>();
  }
  core::Batch batch({}, std::vector<std::int64_t>(static_cast<std::size_t>(rows)));
  batch.set("x", x);
  batch.set("y", y);
  batch.set("weight", weight);
  return batch;
}

// 256 samples whose gradients are exact in half types and add up to more than such a type can hold exactly.
core::Batch small_numbers(unsigned seed) {
  core::Batch batch = whole_numbers(256, seed, /*most_x=*/1, /*weighted=*/false);
  batch["x"].abs_();
  batch["y"].sub_(20);
  return batch;
}

struct Rig {
  Rig(core::Communicator& ranks, StepOptions options, bool scaling, bool drops = false)
      : model(drops),
        optimizer(optim::make_optimizer({.name = "sgd", .weight_decay = 0, .momentum = 0.9}, model.parameters())),
        scaler({.scaling = scaling, .initial_scale = kScale}, at::kCPU),
        ema(model.parameters(), {}, 0.5),
        step({.model = model, .optimizer = *optimizer, .scaler = scaler, .ranks = ranks, .ema = &ema}, options) {}
  void take(const core::Batch& batch, std::int64_t number, std::int64_t microbatch) {
    step.compute(batch, number, microbatch);
    step.commit(0x1p-8);
  }
  [[nodiscard]] double skipped() const {
    const auto& names = step.scalar_names();
    return step.scalars()[std::ranges::find(names, "skipped") - names.begin()].item<double>();
  }
  // Weights, moments and averages, in copies; without the scale.
  [[nodiscard]] Weights everything() const {
    core::State state;
    optimizer->save_state(state);
    ema.save_state(state);
    Weights all{model.parameters()[0].tensor.detach().clone()};
    for (const auto& [name, tensor] : state.tensors) {
      all.push_back(tensor.clone());
    }
    return all;
  }

  Squares model;
  std::unique_ptr<optim::Optimizer> optimizer;
  precision::GradScaler scaler;
  optim::Ema ema;
  Step step;
};

bool same_bits(const Weights& a, const Weights& b) {
  return std::ranges::equal(a, b, [](const at::Tensor& left, const at::Tensor& right) { return left.equal(right); });
}

// After two steps over three ranks that are cut unevenly, or over one.
Weights after_two_steps(std::int64_t rows, unsigned seed, const std::vector<std::int64_t>& cuts,
                        std::int64_t microbatch, StepOptions options, bool scaling) {
  Weights result;
  LockstepRanks(static_cast<int>(cuts.size()) - 1).run([&](core::Communicator& ranks) {
    const auto rank = static_cast<std::size_t>(ranks.rank());
    Rig rig(ranks, options, scaling);
    // The second step would no longer be exact, but it starts from equal bits and computes one sample.
    rig.take(whole_numbers(rows, seed).slice(cuts[rank], cuts[rank + 1]), 0, microbatch);
    rig.take(whole_numbers(1, seed + 1).slice(0, rank == 0 ? 1 : 0), 1, 0);
    result = rig.everything();
  });
  return result;
}

TEST(ExactBits, AnySplitGivesTheSameWeightsMomentsAndAverages) {
  for (unsigned seed = 0; seed < 12; ++seed) {
    const auto rows = static_cast<std::int64_t>(1 + seed * 2);
    for (const auto& [clip, scaling] : {std::pair{0.0, false}, {0.0, true}, {0.5, true}}) {
      const Weights whole = after_two_steps(rows, seed, {0, rows}, 0, {.clip = clip}, scaling);
      for (std::int64_t microbatch = 1; microbatch <= rows; ++microbatch) {
        for (const std::int64_t first : {rows, rows - 1, rows / 3}) {
          const Weights split =
              after_two_steps(rows, seed, {0, first, first, rows}, microbatch, {.clip = clip}, scaling);
          EXPECT_TRUE(same_bits(split, whole)) << rows << " rows, " << first << " on the first rank, passes of "
                                               << microbatch << ", clip " << clip << ", scaling " << scaling;
        }
      }
    }
  }
}

// Samples in pairs whose gradients cancel: the norm of each pass is far above the limit, that of the batch is below.
TEST(ExactBits, ClippingIgnoresTheNormsOfPasses) {
  core::Batch batch = whole_numbers(17, 3, 4, /*weighted=*/false);
  const at::Tensor mean = (batch["x"] * Squares().parameters()[0].tensor.detach()).sum(1);
  batch["x"].slice(0, 8, 16).copy_(batch["x"].slice(0, 0, 8));
  batch["y"].slice(0, 8, 16).copy_(2 * mean.slice(0, 0, 8) - batch["y"].slice(0, 0, 8));
  batch["y"][16] = mean[16] - 1;
  batch["weight"].fill_(3.5);
  batch["weight"][16] = kTotal - 16 * 3.5;
  core::SingleRank alone;
  Rig whole(alone, {}, false), part(alone, {}, false);
  whole.step.compute(batch, 0);
  const double norm = whole.model.parameters()[0].tensor.grad().norm().item<double>();
  whole.step.commit(0x1p-8);
  part.step.compute(batch.slice(0, 2), 0);  // the mean over a weight of 7
  ASSERT_GT(part.model.parameters()[0].tensor.grad().norm().item<double>() * 7 / kTotal, 1.5 * norm);
  Rig clipped(alone, {.clip = 1.01 * norm}, false);
  clipped.take(batch, 0, 2);
  EXPECT_TRUE(same_bits(clipped.everything(), whole.everything()));
}

// Only one pass overflows, and only by the scale. The step is as if it had never been; the scale is halved once.
TEST(ExactBits, AnOverflowInOnePassSkipsTheStepOnce) {
  core::SingleRank alone;
  constexpr std::int64_t kRows = 16, kMicrobatch = 4;
  for (std::int64_t pass = 0; pass < kRows / kMicrobatch; ++pass) {
    const StepOptions options{.clip = 1, .seed = 3};
    Rig rig(alone, options, true, /*drops=*/true), never(alone, options, true, true), fine(alone, options, true, true);
    const auto batch = [](unsigned seed) { return whole_numbers(kRows, seed); };
    core::Batch spike = batch(1);
    spike["x"][pass * kMicrobatch + 1].fill_(0x1p57F);  // the gradients are up to 2^120
    spike["weight"][pass * kMicrobatch + 1].fill_(1);
    for (Rig* each : {&rig, &never, &fine}) {
      each->take(batch(0), 0, kMicrobatch);
    }
    const Weights before = rig.everything();
    rig.take(spike, 1, kMicrobatch);
    const at::Tensor drawn = at::rand({4});
    Rig unscaled(alone, options, false, true);
    unscaled.take(spike, 1, kMicrobatch);
    ASSERT_EQ(unscaled.skipped(), 0) << "the scale alone makes it overflow";
    EXPECT_EQ(rig.skipped(), 1) << pass;
    EXPECT_EQ(rig.scaler.current_scale().item<double>(), kScale / 2) << pass;
    EXPECT_TRUE(same_bits(rig.everything(), before)) << pass;
    fine.take(batch(1), 1, kMicrobatch);
    EXPECT_TRUE(at::rand({4}).equal(drawn)) << "generators depend on the overflow of pass " << pass;
    for (const std::int64_t number : {2, 3}) {
      rig.take(batch(static_cast<unsigned>(number)), number, kMicrobatch);
      never.take(batch(static_cast<unsigned>(number)), number, kMicrobatch);
      EXPECT_EQ(rig.skipped(), 0);
    }
    EXPECT_EQ(rig.scaler.current_scale().item<double>(), kScale / 2) << pass;
    EXPECT_TRUE(same_bits(rig.everything(), never.everything())) << pass;
    EXPECT_FALSE(same_bits(rig.everything(), before));
  }
}

// Gradients of single samples are exact in half types, their sum is exact only in float32.
TEST(ExactBits, HalfWeightsAddUpAsFloat32Weights) {
  core::SingleRank alone;
  for (const at::ScalarType dtype : {at::kBFloat16, at::kHalf}) {
    bool half_would_lose = false;
    for (unsigned seed = 0; seed < 4; ++seed) {
      const core::Batch batch = small_numbers(seed);
      Squares twin, model;
      precision::convert_to_half(model.parameters(), dtype);
      Step exact(twin, {.name = "sgd"}), half(model, {.name = "sgd"});
      exact.compute(batch, 0);
      half.compute(batch, 0, /*microbatch=*/1);
      const at::Tensor expected = twin.parameters()[0].tensor.grad(), found = model.parameters()[0].tensor.grad();
      EXPECT_EQ(found.scalar_type(), at::kFloat);
      EXPECT_TRUE(found.to(at::kFloat).equal(expected)) << c10::toString(dtype) << found << expected;

      Squares each;
      Step one(each, {.name = "sgd"});
      at::Tensor sum = at::full({kWidth}, 0, at::TensorOptions(dtype));
      for (std::int64_t row = 0; row < batch.size(); ++row) {
        one.compute(batch.slice(row, row + 1), 0);
        sum += (each.parameters()[0].tensor.grad() / static_cast<double>(batch.size())).to(dtype);
      }
      half_would_lose |= !sum.to(at::kFloat).equal(expected);
    }
    EXPECT_TRUE(half_would_lose) << "the data cannot tell float32 sums from those in " << c10::toString(dtype);
  }
}

// Passes of several samples: each has one rounding to the half type, and the sum adds none.
TEST(ExactBits, HalfWeightsRoundOncePerPass) {
  for (const std::int64_t microbatch : {2, 3, 7, 64, 255}) {
    const core::Batch batch = small_numbers(9);
    Squares twin, model;
    precision::convert_to_half(model.parameters(), at::kBFloat16);
    Step exact(twin, {.name = "sgd"}), half(model, {.name = "sgd"});
    exact.compute(batch, 0);
    half.compute(batch, 0, microbatch);
    const std::int64_t passes = (batch.size() + microbatch - 1) / microbatch;
    at::Tensor allowed = at::full({kWidth}, 0, at::kFloat);
    Squares part;
    Step one(part, {.name = "sgd"});
    for (std::int64_t pass = 0; pass < passes; ++pass) {
      const core::Batch rows = batch.slice(pass * batch.size() / passes, (pass + 1) * batch.size() / passes);
      one.compute(rows, 0);  // the mean over these rows
      const double share = static_cast<double>(rows.size()) / static_cast<double>(batch.size());
      allowed += part.parameters()[0].tensor.grad().abs() * share * 0x1p-8;
    }
    const at::Tensor error = (model.parameters()[0].tensor.grad() - twin.parameters()[0].tensor.grad()).abs();
    EXPECT_TRUE((error <= allowed).all().item<bool>()) << microbatch << error << allowed;
  }
}

}  // namespace
}  // namespace stoker::train
