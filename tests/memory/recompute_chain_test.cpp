// SPDX-License-Identifier: Apache-2.0
// Recomputation of chains that no network of ours has: tied parameters, several inputs and outputs, masks, undefined
// tensors, parts inside of a segment, counts of batches, a second backward pass. How much is computed again, and what
// is refused.
#include <ATen/ops/dropout.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/tanh.h>
#include <ATen/ops/where.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/linear.h>

#include <functional>

#include "stoker/base/error.h"
#include "stoker/memory/recompute.h"
#include "stoker/models/builder.h"
#include "stoker/models/gpt.h"
#include "support/dispatch_counter.h"
#include "support/recomputed_pass.h"

namespace stoker::memory {
namespace {

using stoker::testing::Chain;
using stoker::testing::expect_equal;
using stoker::testing::expect_same_pass;
using stoker::testing::NetworkChain;
using stoker::testing::recompute_plan;
using stoker::testing::run_pass;
using stoker::testing::wave_of;
using stoker::testing::weighted_sum;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

at::Tensor parameter(at::IntArrayRef shape, double phase) {
  return wave_of(shape, phase).mul_(0.5).set_requires_grad(true);
}

// Runs one function per segment: part 0 of it, then part 1.
class Functions final : public Chain {
 public:
  using Function = std::function<core::TensorList(core::TensorList)>;
  struct Segment {
    std::string name;
    std::vector<std::pair<std::string, Function>> parts;
  };
  Functions(std::vector<at::Tensor> weights, std::vector<Segment> segments) : segments_(std::move(segments)) {
    std::vector<int> all;
    for (int i = 0; i < std::ssize(segments_); ++i) {
      all.push_back(i);
    }
    for (at::Tensor& each : weights) {
      parameters_.push_back({fmt::format("w{}", parameters_.size()), std::move(each), core::Role::kLinear, all});
    }
  }
  [[nodiscard]] const std::vector<core::Parameter>& parameters() const override { return parameters_; }
  [[nodiscard]] int segments() const override { return static_cast<int>(segments_.size()); }
  [[nodiscard]] std::string segment_name(int segment) const override { return segments_.at(segment).name; }
  [[nodiscard]] std::vector<std::string> inner_segments(int segment) const override {
    std::vector<std::string> names;
    for (const auto& part : segments_.at(segment).parts) {
      names.push_back(part.first);
    }
    return names.size() > 1 ? names : std::vector<std::string>{};
  }
  [[nodiscard]] core::TensorList forward_segment(int segment, core::TensorList values) override {
    for (const auto& part : segments_.at(segment).parts) {
      values = part.second(std::move(values));
    }
    return values;
  }
  [[nodiscard]] core::TensorList forward_inner(int segment, int inner, core::TensorList values) override {
    return segments_.at(segment).parts.at(inner).second(std::move(values));
  }

 private:
  std::vector<core::Parameter> parameters_;
  std::vector<Segment> segments_;
};

// {x [4, 6], mask, undefined} → two outputs and the mask → ... → {y, z, a number per row}. One weight in all segments;
// the second has two parts that draw.
Functions tied_chain() {
  const at::Tensor w = parameter({6, 6}, 0.3), v = parameter({6}, 1.1);
  const auto first = [=](core::TensorList values) {
    const at::Tensor x = values.at(0), mask = values.at(1);
    EXPECT_FALSE(values.at(2).defined());
    const at::Tensor y = at::where(mask, at::tanh(at::linear(x, w)), v);
    return core::TensorList{y, at::Tensor(), (x * v).sin(), mask};
  };
  const auto drop = [=](core::TensorList values) {
    values[0] = at::gelu(at::linear(at::dropout(values[0], 0.4, true), w, v));
    return values;
  };
  const auto mix = [=](core::TensorList values) {
    values[2] = at::dropout(values[2] * values[0], 0.3, true).exp();
    values[0] = at::sigmoid(at::linear(values[0], w.t()));
    return values;
  };
  const auto last = [=](core::TensorList values) {
    return core::TensorList{at::linear(values[0], w), values[2] * values[3], values[0].sum(1), values[3]};
  };
  return {{w, v}, {{"first", {{"", first}}}, {"middle", {{"drop", drop}, {"mix", mix}}}, {"last", {{"", last}}}}};
}

core::TensorList tied_inputs() { return {wave_of({4, 6}), wave_of({4, 6}, 0.5).gt(0), {}}; }

TEST(RecomputeChain, EqualsAPlainPassWithTiedWeightsTuplesMasksAndNestedParts) {
  Functions model = tied_chain();
  const auto plain = run_pass(model, tied_inputs(), "none");
  EXPECT_GT(plain.gradients[0].abs().sum().item<float>(), 0);
  for (const char* choice :
       {"all", "every:2", "drop", "mix", "drop,mix", "middle,drop", "first,middle,drop,mix,last"}) {
    SCOPED_TRACE(choice);
    expect_same_pass(run_pass(model, tied_inputs(), choice), plain);
    expect_same_pass(run_pass(model, tied_inputs(), choice, at::kBFloat16),
                     run_pass(model, tied_inputs(), "none", at::kBFloat16));
  }
}

TEST(RecomputeChain, ASecondBackwardPassAndSecondDerivativesRecomputeAgain) {
  const auto gradients = [](const char* choice, bool second_derivative) {
    Functions model = tied_chain();
    at::Generator generator = at::globalContext().defaultGenerator(c10::kCPU);
    generator.set_current_seed(5);
    const RecomputePlan plan = recompute_plan(model, choice);
    const at::Tensor loss = weighted_sum(plan.forward(model, tied_inputs()));
    const std::vector<at::Tensor> weights{model.parameters()[0].tensor, model.parameters()[1].tensor};
    const auto first = torch::autograd::grad({loss}, weights, {}, /*retain_graph=*/true, second_derivative);
    const at::Tensor next = second_derivative ? weighted_sum(first) : loss;
    const auto second = torch::autograd::grad({next}, weights);
    if (!second_derivative) {
      expect_equal(second, first, "gradient of the second pass");
    }
    return second;
  };
  for (const bool second_derivative : {false, true}) {
    for (const char* choice : {"all", "middle,drop"}) {
      expect_equal(gradients(choice, second_derivative), gradients("none", second_derivative), choice);
    }
  }
}

// A module of torch::nn with momentum=None, whose statistics depend on the count of batches.
TEST(RecomputeChain, ModulesCountABatchOnce) {
  struct Block : torch::nn::Module {
    Block()
        : linear(register_module("linear", torch::nn::Linear(3, 4))),
          norm(register_module("norm",
                               torch::nn::BatchNorm1d(torch::nn::BatchNorm1dOptions(4).momentum(std::nullopt)))) {}
    torch::nn::Linear linear;
    torch::nn::BatchNorm1d norm;
  };
  const auto statistics = [](const char* choice) {
    models::NetworkBuilder builder(1);
    for (const char* name : {"a", "b"}) {
      const auto block = std::make_shared<Block>();
      if (name[0] == 'b') {
        block->linear = block->register_module("other", torch::nn::Linear(4, 4));
      }
      for (const auto& each : block->named_parameters()) {
        const at::NoGradGuard no_grad;
        each.value().copy_(wave_of(each.value().sizes()));
      }
      builder.module_segment(
          name, block, [block](const at::Tensor& x) { return at::relu(block->norm(block->linear(x))); },
          std::string(name) + ".");
    }
    NetworkChain model(builder.finish());
    const RecomputePlan plan = recompute_plan(model, choice);
    for (int step = 0; step < 3; ++step) {
      weighted_sum(plan.forward(model, {wave_of({5, 3}, step)})).backward();
    }
    return model.norm_buffers();
  };
  const core::TensorList plain = statistics("none");
  ASSERT_EQ(plain.size(), 2);
  EXPECT_EQ(plain[1][0].item<std::int64_t>(), 3) << "batches";
  expect_equal(statistics("all"), plain, "statistics");
}

// Calls of an operator in a backward pass with recomputation, beyond those of a plain one.
std::int64_t calls_again(core::Trainable& model, const core::TensorList& inputs, const char* choice, const char* name) {
  std::int64_t plain = 0;
  for (const char* each : {"none", choice}) {
    const RecomputePlan plan = recompute_plan(model, each);
    const at::Tensor loss = weighted_sum(plan.forward(model, inputs));
    const stoker::testing::DispatchCounter counter;
    loss.backward();
    plain = counter.calls(name) - plain;
  }
  return plain;
}

TEST(RecomputeChain, StopsWhenTheNeededTensorsAreThere) {
  NetworkChain model(models::make_gpt({.vocabulary = 13, .context = 7, .layers = 2, .heads = 2, .width = 8}));
  const core::TensorList tokens{at::arange(14, at::kLong).remainder(13).reshape({2, 7})};
  const auto again = [&](const char* choice, const char* name) { return calls_again(model, tokens, choice, name); };
  // A block has 4 products and 2 sums. The last product saves its factors before it computes. There it ends: nobody
  // needs its result, nor the sum after it.
  EXPECT_EQ(again("h", "aten::addmm"), 2 * 4);
  EXPECT_EQ(again("h", "aten::add"), 2 * 1);
  EXPECT_EQ(again("h.1/mlp", "aten::addmm"), 2);
  EXPECT_EQ(again("h.1/mlp", "aten::add"), 0);
  // The part inside needs its input, for which the block runs up to there (2 products, 1 sum).
  EXPECT_EQ(again("h.1,h.1/mlp", "aten::addmm"), 4);
  EXPECT_EQ(again("h.1,h.1/mlp", "aten::add"), 1);
  EXPECT_EQ(again("h.1,h.1/mlp", "aten::gelu"), 1);
}

TEST(RecomputeChain, DoesNothingWhileGradientsAreOff) {
  Functions model = tied_chain();
  const RecomputePlan plan = recompute_plan(model, "all");
  const at::NoGradGuard no_grad;
  EXPECT_FALSE(plan.forward(model, tied_inputs())[0].requires_grad());
}

TEST(RecomputeChain, NamesWhatItRecomputes) {
  Functions model = tied_chain();
  EXPECT_THAT(recompute_plan(model, "every:2").names(), ElementsAre("first", "last"));
  EXPECT_THAT(recompute_plan(model, "middle/mix,last").names(), ElementsAre("middle/mix", "last"));
  EXPECT_TRUE(recompute_plan(model, "none").empty());
}

template <typename Action>
std::string refusal(Action action) {
  try {
    action();
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "nothing was refused";
}

TEST(RecomputeChain, UnknownNamesAreAnsweredWithTheKnownOnes) {
  Functions model = tied_chain();
  EXPECT_THAT(refusal([&] { (void)recompute_plan(model, "first,midle"); }),
              ::testing::AllOf(HasSubstr("\"midle\"; did you mean \"middle\"?"), HasSubstr("first, middle, last"),
                               HasSubstr("drop, mix")));
  EXPECT_THAT(refusal([&] { (void)recompute_plan(model, "last/mix"); }), HasSubstr("\"last/mix\""));
  Functions single({parameter({2}, 0)}, {{"all", {{"", [](core::TensorList values) { return values; }}}}});
  EXPECT_THAT(refusal([&] { (void)recompute_plan(single, "all"); }), HasSubstr("one segment"));
  EXPECT_TRUE(recompute_plan(single, "none").empty());
}

// A chain of two segments, the second one with this function of (x, w, how often it ran before).
std::string refusal_of(const std::function<at::Tensor(const at::Tensor&, const at::Tensor&, int)>& function,
                       const std::function<void(const at::Tensor& x, const at::Tensor& w)>& between = {}) {
  const at::Tensor w = parameter({6, 6}, 0.2);
  int runs = 0;
  at::Tensor inside;
  const auto first = [&](core::TensorList values) {
    return core::TensorList{inside = at::tanh(at::linear(values[0], w))};
  };
  const auto second = [&](core::TensorList values) { return core::TensorList{function(values[0], w, runs++)}; };
  Functions model({w}, {{"first", {{"", first}}}, {"second", {{"", second}}}});
  return refusal([&] {
    const RecomputePlan plan = recompute_plan(model, "second");
    const at::Tensor loss = weighted_sum(plan.forward(model, {wave_of({4, 6})}));
    if (between) {
      const at::NoGradGuard no_grad;
      between(inside, w);
    }
    loss.backward();
  });
}

at::Tensor usual(const at::Tensor& x, const at::Tensor& w, int) { return at::tanh(at::linear(at::sigmoid(x * 2), w)); }

TEST(RecomputeChain, RefusesWhatWouldGiveWrongGradients) {
  EXPECT_EQ(refusal_of(usual), "nothing was refused");
  const auto in_place = [](const at::Tensor& x, const at::Tensor& w, int run) {
    return usual(at::Tensor(x).mul_(2), w, run);
  };
  EXPECT_THAT(refusal_of(in_place), HasSubstr("segment second changes one of its inputs in place"));
  EXPECT_THAT(refusal_of(usual, [](const at::Tensor& x, const at::Tensor&) { at::Tensor(x).add_(1); }),
              HasSubstr("segment second needs was changed in place"));
  EXPECT_THAT(refusal_of(usual, [](const at::Tensor&, const at::Tensor& w) { at::Tensor(w).add_(1); }),
              HasSubstr("a parameter of segment second was changed"));
  const auto fewer = [](const at::Tensor& x, const at::Tensor& w, int run) {
    return run == 0 ? usual(x, w, run).exp() : usual(x, w, run);
  };
  EXPECT_THAT(refusal_of(fewer), HasSubstr("segment second saves fewer tensors"));
  const auto other = [](const at::Tensor& x, const at::Tensor& w, int run) {
    return usual(run == 0 ? x : x.slice(0, 0, 2), w, run);
  };
  EXPECT_THAT(refusal_of(other), HasSubstr("segment second saved float32 [4, 6] on cpu, but saves float32 [2, 6]"));
  const auto own_gradient = [](const at::Tensor& x, const at::Tensor& w, int run) {
    const at::Tensor y = usual(x, w, run);
    return y * torch::autograd::grad({y.sum()}, {w}, {}, /*retain_graph=*/true)[0].sum();
  };
  EXPECT_THAT(refusal_of(own_gradient), HasSubstr("segment second computes gradients in its own forward pass"));
  const auto saved = [](const at::Tensor& x, const at::Tensor& w, int) {
    at::Tensor y = (x * 2).sigmoid();
    const at::Tensor z = at::linear(y, w);
    {
      const at::NoGradGuard no_grad;
      y.add_(1);
    }
    return z.tanh();
  };
  EXPECT_THAT(refusal_of(saved), HasSubstr("segment second changes in place a tensor that its gradient needs"));
}

}  // namespace
}  // namespace stoker::memory
