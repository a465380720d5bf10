// SPDX-License-Identifier: Apache-2.0
// Recomputation on a GPU, where autograd's own thread computes again: with dropout drawn by the GPU's generator, batch
// norm and half precision. Without a GPU the tests are reported as skipped.
#include <ATen/Context.h>
#include <ATen/ops/arange.h>
#include <gtest/gtest.h>

#include "stoker/device/tensor_bytes.h"
#include "stoker/models/encoder.h"
#include "stoker/models/resnet.h"
#include "support/gpu.h"
#include "support/recomputed_pass.h"

namespace stoker::memory {
namespace {

using stoker::testing::expect_same_pass;
using stoker::testing::NetworkChain;
using stoker::testing::run_pass;
using stoker::testing::wave_of;

const c10::Device kGpu(c10::DeviceType::CUDA, 0);

// Sums of a GPU are the same each time only with these algorithms.
class Deterministic {
 public:
  Deterministic() : before_(at::globalContext().deterministicCuDNN()) {
    at::globalContext().setDeterministicCuDNN(true);
  }
  ~Deterministic() { at::globalContext().setDeterministicCuDNN(before_); }
  Deterministic(const Deterministic&) = delete;
  Deterministic& operator=(const Deterministic&) = delete;

 private:
  bool before_;
};

TEST(GpuRecompute, EqualsAPlainPass) {
  STOKER_NEEDS_GPU();
  const Deterministic deterministic;
  for (const at::ScalarType autocast : {at::kFloat, at::kBFloat16}) {
    NetworkChain resnet(models::make_resnet({.classes = 5, .channels = 3, .image_size = 32, .seed = 2},
                                            {.blocks = {2, 1, 1, 1}, .width = 8}),
                        kGpu);
    const core::TensorList images{wave_of({4, 3, 32, 32}).to(kGpu)};
    const auto plain = run_pass(resnet, images, "none", autocast);
    for (const char* choice : {"all", "every:2", "layer1"}) {
      SCOPED_TRACE(choice);
      expect_same_pass(run_pass(resnet, images, choice, autocast), plain);
    }
  }
}

// The embedding's gradient is a sum in no fixed order: compared are the outputs and the generator.
TEST(GpuRecompute, DrawsTheSameDropout) {
  STOKER_NEEDS_GPU();
  NetworkChain encoder(
      models::make_encoder({.vocabulary = 16, .context = 8, .layers = 3, .heads = 2, .width = 16, .dropout = 0.2}),
      kGpu);
  const core::TensorList tokens{at::arange(24, at::kLong).remainder(16).reshape({3, 8}).to(kGpu)};
  const auto plain = run_pass(encoder, tokens, "none");
  for (const char* choice : {"all", "attention.heads,mlp.gelu"}) {
    const auto again = run_pass(encoder, tokens, choice);
    EXPECT_TRUE(again.drawn.equal(plain.drawn)) << choice;
    for (std::size_t i = 0; i < plain.gradients.size(); ++i) {
      EXPECT_TRUE(again.gradients[i].allclose(plain.gradients[i], 1e-4, 1e-5)) << choice << ' ' << i;
    }
  }
}

TEST(GpuRecompute, HoldsFewerBytes) {
  STOKER_NEEDS_GPU();
  NetworkChain encoder(
      models::make_encoder({.vocabulary = 16, .context = 64, .layers = 8, .heads = 2, .width = 64, .dropout = 0.1}),
      kGpu);
  const core::TensorList tokens{at::arange(8 * 64, at::kLong).remainder(16).reshape({8, 64}).to(kGpu)};
  const auto left = [&](const char* choice) {
    const RecomputePlan plan = stoker::testing::recompute_plan(encoder, choice);
    const device::TensorBytes bytes(kGpu);
    const core::TensorList outputs = plan.forward(encoder, tokens);
    return bytes.held();
  };
  (void)left("none");  // libraries allocate their workspaces
  EXPECT_LT(left("all"), left("none") / 2);
}

}  // namespace
}  // namespace stoker::memory
