// SPDX-License-Identifier: Apache-2.0
// Property: any split of a batch, over ranks and microbatches, gives the gradients of the whole batch. Tokens are
// padded unevenly, rows and classes have weights, tails have one sample, and some parts have no token at all.
#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/gather.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <random>

#include "stoker/optim/optimizer.h"
#include "stoker/precision/grad_scaler.h"
#include "stoker/train/step.h"
#include "support/lockstep_ranks.h"

namespace stoker::train {
namespace {

using stoker::testing::LockstepRanks;

constexpr std::int64_t kTokens = 5, kFeatures = 3, kClasses = 4, kPadding = -100;
constexpr std::array<double, kClasses> kClassWeights = {0.5, 2, 0, 1.25};
constexpr double kSizeWeight = 0.25;

class Draw {
 public:
  explicit Draw(unsigned seed) : engine_(seed) {}
  std::int64_t below(std::int64_t n) { return static_cast<std::int64_t>(engine_() % static_cast<unsigned>(n)); }
  double number() { return static_cast<double>(below(2001) - 1000) / 500; }  // -2 ... 2

 private:
  std::mt19937 engine_;
};

// A linear classifier of tokens. Its loss is a weighted mean over the tokens that are not padding, and a mean over
// rows.
class Tagger final : public core::Trainable {
 public:
  explicit Tagger(at::ScalarType dtype) {
    at::Tensor weight = at::empty({kFeatures, kClasses}, at::kDouble), bias = at::empty({kClasses}, at::kDouble);
    Draw draw(5);
    for (const at::Tensor& each : {weight, bias}) {
      std::generate_n(each.mutable_data_ptr<double>(), each.numel(), [&] { return draw.number() / 2; });
    }
    parameters_ = {{"weight", weight.to(dtype).set_requires_grad(true), core::Role::kLinear},
                   {"bias", bias.to(dtype).set_requires_grad(true), core::Role::kBias}};
  }
  [[nodiscard]] const std::vector<core::Parameter>& parameters() const override { return parameters_; }
  [[nodiscard]] core::TensorList inputs(const core::Batch& batch) const override {
    return {batch["x"].to(parameters_[0].tensor.scalar_type())};
  }
  [[nodiscard]] core::TensorList forward_segment(int, core::TensorList x) override {
    return {at::matmul(x[0], parameters_[0].tensor) + parameters_[1].tensor};
  }
  [[nodiscard]] std::vector<std::string> loss_names() const override { return {"tokens", "size"}; }
  [[nodiscard]] core::Normalisers normalisers(const core::Batch& batch) const override {
    return at::stack({weights(batch).sum(), at::scalar_tensor(batch.size(), at::kDouble)});
  }
  [[nodiscard]] core::LossTerms loss(const core::TensorList& outputs, const core::Batch& batch) const override {
    const at::Tensor ids = batch["y"].clamp_min(0).unsqueeze(2);
    const at::Tensor picked = at::gather(at::log_softmax(outputs[0], 2), 2, ids).squeeze(2);
    return {{"tokens", 1, -(picked * weights(batch).to(picked.scalar_type())).sum()},
            {"size", kSizeWeight, outputs[0].square().sum()}};
  }

 private:
  // Of each token, float64 [rows, tokens].
  static at::Tensor weights(const core::Batch& batch) {
    const at::Tensor classes = at::tensor(at::ArrayRef<double>(kClassWeights), at::kDouble);
    const at::Tensor y = batch["y"];
    const at::Tensor of_class = classes.index_select(0, y.clamp_min(0).flatten()).view(y.sizes());
    return of_class * batch["weight"].unsqueeze(1) * y.ge(0);
  }
  std::vector<core::Parameter> parameters_;
};

// Rows with 0 to 5 tokens; a run of rows in the middle has only padding.
core::Batch padded_batch(Draw& draw, std::int64_t rows) {
  const at::Tensor x = at::empty({rows, kTokens, kFeatures}, at::kDouble), weight = at::empty({rows}, at::kDouble);
  const at::Tensor y = at::empty({rows, kTokens}, at::kLong);
  const std::int64_t empty_from = 1 + draw.below(rows), empty_to = empty_from + draw.below(rows);
  std::generate_n(x.mutable_data_ptr<double>(), x.numel(), [&] { return draw.number(); });
  for (std::int64_t row = 0; row < rows; ++row) {
    weight.mutable_data_ptr<double>()[row] = row == 0 ? 1 : 0.25 * static_cast<double>(draw.below(9));
    const std::int64_t tokens = row >= empty_from && row < empty_to ? 0 : draw.below(kTokens + 1);
    for (std::int64_t t = 0; t < kTokens; ++t) {
      y.mutable_data_ptr<std::int64_t>()[row * kTokens + t] = t < tokens ? draw.below(kClasses) : kPadding;
    }
  }
  y.mutable_data_ptr<std::int64_t>()[0] = 0;  // one token counts at least
  std::vector<std::int64_t> indices(static_cast<std::size_t>(rows));
  core::Batch batch({}, std::move(indices));
  batch.set("x", x);
  batch.set("y", y);
  batch.set("weight", weight);
  return batch;
}

// The gradient by its definition, without autograd, in float64; and the sum of the sizes of all that is added up.
struct Twin {
  std::array<double, (kFeatures + 1) * kClasses> gradient{}, size{};  // the bias is the last row
  explicit Twin(const core::Batch& batch) {
    const Tagger model(at::kDouble);
    const double* w = model.parameters()[0].tensor.const_data_ptr<double>();
    const double* b = model.parameters()[1].tensor.const_data_ptr<double>();
    const double* x = batch["x"].const_data_ptr<double>();
    const auto* y = batch["y"].const_data_ptr<std::int64_t>();
    const auto weight_of = [&](std::int64_t token) {
      return y[token] < 0 ? 0.0
                          : kClassWeights[static_cast<std::size_t>(y[token])] *
                                batch["weight"].const_data_ptr<double>()[token / kTokens];
    };
    double total = 0;
    for (std::int64_t token = 0; token < batch.size() * kTokens; ++token) {
      total += weight_of(token);
    }
    for (std::int64_t token = 0; token < batch.size() * kTokens; ++token) {
      std::array<double, kClasses> out{};
      double exps = 0;
      for (std::size_t c = 0; c < kClasses; ++c) {
        out[c] = b[c];
        for (std::size_t f = 0; f < kFeatures; ++f) {
          out[c] += x[token * kFeatures + static_cast<std::int64_t>(f)] * w[f * kClasses + c];
        }
        exps += std::exp(out[c]);
      }
      for (std::size_t c = 0; c < kClasses; ++c) {
        const double hit = static_cast<std::size_t>(y[token]) == c ? 1 : 0, p = std::exp(out[c]) / exps;
        const double square = 2 * kSizeWeight * out[c] / static_cast<double>(batch.size());
        const double share = weight_of(token) / total;
        for (std::size_t f = 0; f <= kFeatures; ++f) {
          const double input = f < kFeatures ? x[token * kFeatures + static_cast<std::int64_t>(f)] : 1;
          gradient[f * kClasses + c] += input * (share * (p - hit) + square);
          size[f * kClasses + c] += std::abs(input) * (share * (p + hit) + std::abs(square));
        }
      }
    }
  }
  [[nodiscard]] double norm() const {
    double sum = 0;
    for (const double each : gradient) {
      sum += each * each;
    }
    return std::sqrt(sum);
  }
};

// Cuts for the ranks: some parts may be empty or have one row.
std::vector<std::int64_t> cuts_of(Draw& draw, std::int64_t rows, int ranks) {
  std::vector<std::int64_t> cuts = {0, rows};
  for (int i = 1; i < ranks; ++i) {
    cuts.push_back(draw.below(2) == 0 ? rows - draw.below(2) : draw.below(rows + 1));
  }
  std::ranges::sort(cuts);
  return cuts;
}

// What a step of plain SGD with lr 1 takes from the parameters, over ranks with their own microbatches.
std::vector<double> taken(const core::Batch& batch, at::ScalarType dtype, const std::vector<std::int64_t>& cuts,
                          const std::vector<std::int64_t>& microbatches, double clip) {
  std::vector<double> result;
  LockstepRanks(static_cast<int>(microbatches.size())).run([&](core::Communicator& ranks) {
    const auto rank = static_cast<std::size_t>(ranks.rank());
    Tagger model(dtype);
    const auto optimizer = optim::make_optimizer({.name = "sgd", .weight_decay = 0, .momentum = 0}, model.parameters());
    precision::GradScaler scaler({.scaling = false}, at::kCPU);
    Step step({.model = model, .optimizer = *optimizer, .scaler = scaler, .ranks = ranks}, {.clip = clip});
    step.compute(batch.slice(cuts[rank], cuts[rank + 1]), 0, microbatches[rank]);
    std::vector<double> found;
    if (clip > 0) {
      step.commit(1);
    }
    const Tagger before(dtype);
    for (std::size_t i = 0; i < 2; ++i) {
      const at::Tensor now = model.parameters()[i].tensor.detach();
      const at::Tensor by =
          clip > 0 ? before.parameters()[i].tensor.detach() - now : model.parameters()[i].tensor.grad();
      const at::Tensor flat = by.to(at::kDouble).flatten();
      found.insert(found.end(), flat.const_data_ptr<double>(), flat.const_data_ptr<double>() + flat.numel());
    }
    if (rank + 1 == microbatches.size()) {
      result = found;
    }
  });
  return result;
}

struct Case {
  core::Batch batch;
  std::vector<std::int64_t> cuts, microbatches;
  std::string text;
};

Case random_case(unsigned seed) {
  Draw draw(seed);
  const std::int64_t rows = 1 + draw.below(24);
  const int ranks = 1 + static_cast<int>(draw.below(3));
  Case made{padded_batch(draw, rows), cuts_of(draw, rows, ranks), {}, {}};
  for (int rank = 0; rank < ranks; ++rank) {
    made.microbatches.push_back(draw.below(4) == 0 ? 1 : draw.below(rows + 1));
  }
  made.text = fmt::format("case {}: {} rows, cut at {}, microbatches {}", seed, rows, fmt::join(made.cuts, " "),
                          fmt::join(made.microbatches, " "));
  return made;
}

// Rounding: each of the numbers added has an error of some units, and each addition adds one.
double unit(at::ScalarType dtype) {
  return dtype == at::kDouble ? std::numeric_limits<double>::epsilon() : std::numeric_limits<float>::epsilon();
}
constexpr double kUnits = 32 + 24 * kTokens;

TEST(ExactAccumulation, AnySplitHasTheGradientsOfTheWholeBatch) {
  for (unsigned seed = 0; seed < 80; ++seed) {
    const Case each = random_case(seed);
    const Twin twin(each.batch);
    for (const at::ScalarType dtype : {at::kDouble, at::kFloat}) {
      SCOPED_TRACE(each.text);
      const std::vector<double> found = taken(each.batch, dtype, each.cuts, each.microbatches, 0);
      for (std::size_t i = 0; i < found.size(); ++i) {
        EXPECT_NEAR(found[i], twin.gradient[i], kUnits * unit(dtype) * twin.size[i]) << i;
      }
    }
  }
}

// Just above and just below the norm of the whole gradient, whatever the norms of its parts are.
TEST(ExactAccumulation, ClippingSeesTheNormOfTheWholeBatch) {
  for (unsigned seed = 100; seed < 140; ++seed) {
    const Case each = random_case(seed);
    SCOPED_TRACE(each.text);
    const Twin twin(each.batch);
    for (const double share : {0.3, 0.99, 1.01}) {
      const double limit = share * twin.norm(), factor = share < 1 ? limit / (twin.norm() + 1e-6) : 1;
      const std::vector<double> found = taken(each.batch, at::kDouble, each.cuts, each.microbatches, limit);
      for (std::size_t i = 0; i < found.size(); ++i) {
        EXPECT_NEAR(found[i], factor * twin.gradient[i], kUnits * unit(at::kDouble) * (twin.size[i] + 1)) << share;
      }
    }
  }
}

}  // namespace
}  // namespace stoker::train
