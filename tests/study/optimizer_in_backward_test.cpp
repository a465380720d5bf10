// SPDX-License-Identifier: Apache-2.0
// Whole networks with the optimizer inside backward: equal to the bit to the optimizer after backward, with averages,
// recomputation, half precision, batch norm and tied weights; and with fewer bytes of gradients.
#include <gtest/gtest.h>

#include <string>

#include "stoker/device/tensor_bytes.h"
#include "stoker/study/tips/bench_model.h"
#include "stoker/train/step.h"
#include "support/step_state.h"

namespace stoker::study {
namespace {

struct Chosen {
  std::string model, optimizer;
  std::string recompute = "none";
  at::ScalarType autocast = at::kFloat;
  std::int64_t samples = 2;
};

struct Result {
  stoker::testing::StepState state;
  std::int64_t peak = 0;  // bytes of a step above what is held between steps
};

Result three_steps(const Chosen& chosen, bool in_backward) {
  BenchModel bench = make_bench_model(chosen.model, {.batch = chosen.samples});
  core::Trainable& model = *bench.model;
  const auto optimizer = optim::make_optimizer({.name = chosen.optimizer, .weight_decay = 0.1}, model.parameters());
  precision::GradScaler scaler({.scaling = false}, at::kCPU);
  optim::Ema ema(model.parameters(), model.norm_buffers(), 0.9);
  core::SingleRank ranks;
  train::Step step({model, *optimizer, scaler, ranks, &ema}, {.autocast = chosen.autocast,
                                                              .seed = 5,
                                                              .recompute = memory::parse_recompute(chosen.recompute),
                                                              .optimizer_in_backward = in_backward});
  Result result;
  for (int number = 0; number < 3; ++number) {
    const device::TensorBytes counted(at::kCPU);
    step.set_lr(0.01);
    step.compute(bench.batch, number);
    step.commit(0.01);
    result.peak = counted.peak();
  }
  result.state = stoker::testing::step_state(model, step, {optimizer.get(), &ema});
  return result;
}

TEST(OptimizerInBackward, EqualsPlainStepsOfWholeNetworks) {
  for (const Chosen& chosen : std::vector<Chosen>{{"mlp", "sgd"},
                                                  {"mlp", "adamw"},
                                                  {"cnn", "sgd"},
                                                  {"cnn", "adamw", "all"},
                                                  {"unet", "adamw"},
                                                  {"bert", "adamw", "attention,mlp.gelu"},
                                                  {"gpt", "sgd", "none", at::kBFloat16},
                                                  {"gpt", "adamw"},
                                                  {"gpt", "adamw", "all", at::kBFloat16},
                                                  {"gpt", "adamw", "attention,mlp"}}) {
    SCOPED_TRACE(chosen.model + " " + chosen.optimizer + " " + chosen.recompute);
    const Result plain = three_steps(chosen, false), early = three_steps(chosen, true);
    stoker::testing::expect_equal(early.state, plain.state);
  }
}

TEST(OptimizerInBackward, GradientsNeverExistTogether) {
  // With recomputation, so that the peak comes where most gradients exist.
  const Chosen few{.model = "gpt", .optimizer = "sgd", .recompute = "all", .samples = 1};
  const BenchModel bench = make_bench_model("gpt", {});
  std::int64_t all = 0, largest = 0;
  for (const core::Parameter& each : bench.model->parameters()) {
    all += static_cast<std::int64_t>(each.tensor.nbytes());
    largest = std::max(largest, static_cast<std::int64_t>(each.tensor.nbytes()));
  }
  const std::int64_t saved = three_steps(few, false).peak - three_steps(few, true).peak;
  EXPECT_GT(saved, (all - largest) / 2);
  EXPECT_LE(saved, all);
}

}  // namespace
}  // namespace stoker::study
