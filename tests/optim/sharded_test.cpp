// SPDX-License-Identifier: Apache-2.0
// An optimizer whose state is divided among ranks against the whole one: the same weights to the bit, a part of the
// state, and the same state when it is collected.
#include "stoker/optim/sharded.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/randn.h>
#include <c10/core/MemoryFormat.h>
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "support/lockstep_ranks.h"

namespace stoker::optim {
namespace {

using stoker::testing::LockstepRanks;

at::Tensor values(at::IntArrayRef sizes, int seed, at::ScalarType type) {
  auto generator = at::detail::createCPUGenerator(static_cast<std::uint64_t>(seed));
  return at::randn(sizes, generator, at::kDouble).to(type);
}

// Of several shapes, layouts and roles; one is frozen.
std::vector<core::Parameter> parameters(at::ScalarType type) {
  std::vector<core::Parameter> all;
  const auto add = [&](const char* name, at::Tensor tensor, core::Role role, bool trained = true) {
    all.push_back({name, tensor.set_requires_grad(trained), role});
  };
  add("conv", values({16, 3, 5, 5}, 1, type).contiguous(at::MemoryFormat::ChannelsLast), core::Role::kConv);
  add("norm", values({7}, 2, type), core::Role::kNorm);
  add("frozen", values({31}, 3, type), core::Role::kLinear, false);
  add("linear", values({65, 130}, 4, type), core::Role::kLinear);
  add("turned", values({40, 9}, 5, type).t(), core::Role::kLinear);
  add("bias", values({65}, 6, type), core::Role::kBias);
  return all;
}

void set_gradients(const std::vector<core::Parameter>& all, int step) {
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i].tensor.requires_grad()) {
      const at::Tensor gradient = values(all[i].tensor.sizes(), 100 * step + static_cast<int>(i), at::kDouble);
      const auto type =
          at::isReducedFloatingType(all[i].tensor.scalar_type()) ? at::kFloat : all[i].tensor.scalar_type();
      all[i].tensor.mutable_grad() =
          at::empty_like(all[i].tensor, all[i].tensor.options().dtype(type).requires_grad(false)).copy_(gradient);
    }
  }
}

void train(Optimizer& optimizer, const std::vector<core::Parameter>& all, int from, int to) {
  const at::Tensor fine = at::full({1}, 0.0F), broken = at::full({1}, 1.0F), scale = at::full({}, 2.0F);
  for (int step = from; step < to; ++step) {
    set_gradients(all, step);
    optimizer.set_lr(0.01 + 0.001 * step);
    optimizer.step(step == 1 ? broken : fine, step % 2 == 0 ? scale : at::Tensor());
  }
}

void expect_equal(const std::vector<core::Parameter>& one, const std::vector<core::Parameter>& other) {
  for (std::size_t i = 0; i < one.size(); ++i) {
    EXPECT_TRUE(at::equal(one[i].tensor, other[i].tensor)) << one[i].name;
  }
}

void expect_equal(const core::State& one, const core::State& other) {
  ASSERT_EQ(one.tensors.size(), other.tensors.size());
  for (const auto& [name, tensor] : one.tensors) {
    EXPECT_TRUE(at::equal(tensor, other.tensors.at(name))) << name;
  }
}

struct Case {
  const char* name;
  double momentum;
  at::ScalarType type;
};

class Sharded : public ::testing::TestWithParam<Case> {
 protected:
  [[nodiscard]] OptimizerOptions options() const {
    return {.name = GetParam().name,
            .weight_decay = 0.1,
            .momentum = GetParam().momentum,
            .lr_factor = [](const core::Parameter& each) { return each.name == "linear" ? 0.5 : 1.0; }};
  }
};

INSTANTIATE_TEST_SUITE_P(Optimizers, Sharded,
                         ::testing::Values(Case{"adamw", 0, at::kFloat}, Case{"adam", 0, at::kDouble},
                                           Case{"sgd", 0.9, at::kFloat}, Case{"sgd", 0, at::kFloat},
                                           Case{"adamw", 0, at::kBFloat16}),
                         [](const auto& each) {
                           return fmt::format("{}{}{}", each.param.name, each.param.momentum > 0 ? "Momentum" : "",
                                              c10::toString(each.param.type));
                         });

TEST_P(Sharded, GivesTheWeightsOfTheWholeOne) {
  const std::vector<core::Parameter> expected = parameters(GetParam().type);
  const auto whole = make_optimizer(options(), expected);
  train(*whole, expected, 0, 5);
  for (const int ranks : {2, 3, 7}) {
    LockstepRanks(ranks).run([&](core::Communicator& communicator) {
      const std::vector<core::Parameter> own = parameters(GetParam().type);
      ShardedOptimizer sharded(options(), own, communicator);
      train(sharded, own, 0, 5);
      expect_equal(own, expected);
      const double share = static_cast<double>(whole->state_bytes()) / ranks;
      EXPECT_LE(static_cast<double>(sharded.state_bytes()), share * 1.02 + 64 * 4 * 3)
          << "of rank " << communicator.rank();
      const core::State state = sharded.whole_state();
      if (communicator.rank() == 0) {
        expect_equal(state, whole->whole_state());
      } else {
        EXPECT_TRUE(state.tensors.empty());
      }
    });
  }
}

// Some ranks then have no part; the whole state is complete.
TEST_P(Sharded, TakesModelsWithFewerElementsThanRanks) {
  const auto tiny = [&] {
    return std::vector<core::Parameter>{
        {"w", values({1, 2}, 1, GetParam().type).set_requires_grad(true), core::Role::kLinear}};
  };
  const std::vector<core::Parameter> expected = tiny();
  const auto whole = make_optimizer(options(), expected);
  train(*whole, expected, 0, 5);
  LockstepRanks(3).run([&](core::Communicator& communicator) {
    const std::vector<core::Parameter> own = tiny();
    ShardedOptimizer sharded(options(), own, communicator);
    train(sharded, own, 0, 5);
    expect_equal(own, expected);
    const core::State state = sharded.whole_state();
    if (communicator.rank() == 0) {
      expect_equal(state, whole->whole_state());
    }
  });
}

// A checkpoint is the same whatever the number of ranks.
TEST_P(Sharded, GoesOnFromTheStateOfTheWholeOne) {
  const std::vector<core::Parameter> expected = parameters(GetParam().type);
  const auto whole = make_optimizer(options(), expected);
  train(*whole, expected, 0, 3);
  core::State state;
  std::vector<at::Tensor> weights;
  for (const auto& [name, tensor] : whole->whole_state().tensors) {
    state.tensors[name] = tensor.clone(at::MemoryFormat::Contiguous);  // as a file gives it
  }
  for (const core::Parameter& each : expected) {
    weights.push_back(each.tensor.detach().clone());
  }
  train(*whole, expected, 3, 6);
  LockstepRanks(3).run([&](core::Communicator& communicator) {
    const std::vector<core::Parameter> own = parameters(GetParam().type);
    ShardedOptimizer sharded(options(), own, communicator);
    for (std::size_t i = 0; i < own.size(); ++i) {
      own[i].tensor.detach().copy_(weights[i]);
    }
    sharded.load_state(state);
    train(sharded, own, 3, 6);
    expect_equal(own, expected);
  });
}

}  // namespace
}  // namespace stoker::optim
