// SPDX-License-Identifier: Apache-2.0
// Clipping against torch.nn.utils.clip_grad_norm_, and its treatment of infinities.
#include "stoker/optim/clip.h"

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "golden/optimizers.h"
#include "stoker/base/error.h"
#include "stoker/core/host_value.h"
#include "stoker/optim/plain_loops.h"
#include "support/dispatch_counter.h"

namespace stoker::optim {
namespace {

// Clipping as a step does it: the norm before, and the gradients divided.
at::Tensor clip(const std::vector<at::Tensor>& grads, double max_norm) {
  at::Tensor norm = gradient_norm(grads);
  if (const at::Tensor divisor = clip_divisor(norm, max_norm); divisor.defined()) {
    for (at::Tensor grad : grads) {
      grad.div_(divisor);
    }
  }
  return norm;
}

at::Tensor make_gradient(int step, int first, int count) {
  return (at::arange(first, first + count, at::kDouble) * 0.3 + 0.7 * step).sin() * (1 + 0.1 * step);
}

TEST(Clip, EqualsPyTorch) {
  for (const auto& [dtype, tolerance] : {std::pair{at::kDouble, 1e-12}, {at::kFloat, 1e-6}}) {
    const std::vector<at::Tensor> grads{make_gradient(3, 0, 12).to(dtype), make_gradient(4, 12, 4).to(dtype)};
    const at::Tensor norm = clip(grads, 1.5);
    EXPECT_NEAR(norm.item<double>(), golden::clipped[0], 10 * tolerance);
    for (int i = 0; i < 16; ++i) {
      const at::Tensor value = i < 12 ? grads[0][i] : grads[1][i - 12];
      EXPECT_NEAR(value.item<double>(), golden::clipped[i + 1], tolerance);
    }
  }
}

TEST(Clip, LeavesSmallGradientsAlone) {
  const at::Tensor grad = make_gradient(3, 0, 12), before = grad.clone();
  clip({grad}, 1e6);
  EXPECT_TRUE(grad.equal(before));
}

TEST(Clip, MixesDtypesAndNormsHalfInFloat32) {
  // 300^2 * 4 is beyond float16's largest number, 65504.
  const std::vector<at::Tensor> grads{at::full({4}, 300, at::kHalf), at::full({4}, 400, at::kFloat)};
  const at::Tensor norm = clip(grads, 10);
  EXPECT_EQ(norm.scalar_type(), at::kFloat);
  EXPECT_NEAR(norm.item<double>(), 1000, 1e-3);
  EXPECT_NEAR(grads[0][0].item<double>(), 3, 2e-3);
  EXPECT_NEAR(grads[1][0].item<double>(), 4, 1e-5);
  EXPECT_EQ(gradient_norm({}).item<double>(), 0);
}

// Sizes below and above the limit of our own loops, against float64 and against the operators that a GPU uses.
TEST(Clip, SmallAndLargeTensorsAreOneGradient) {
  std::vector<at::Tensor> grads, twins;
  double squares = 0;
  for (const std::int64_t size : {1, 7, 1000, 8192, 70'000, 200'001}) {
    grads.push_back(make_gradient(1, static_cast<int>(size), static_cast<int>(size)).to(at::kFloat));
    twins.push_back(grads.back().clone());
    squares += grads.back().to(at::kDouble).square().sum().item<double>();
  }
  grads.push_back(make_gradient(2, 0, 4096).to(at::kFloat).reshape({64, 64}).t());  // dense, in another order
  grads.push_back(make_gradient(2, 0, 64).to(at::kFloat).slice(0, 0, 64, 2));       // with gaps
  for (const at::Tensor& last : {grads[6], grads[7]}) {
    twins.push_back(last.clone());
    squares += last.to(at::kDouble).square().sum().item<double>();
  }
  const std::vector<at::Tensor> before = twins;
  const double norm = clip(grads, 2).item<double>();
  EXPECT_NEAR(norm, std::sqrt(squares), 1e-6 * norm);
  for (std::size_t i = 0; i < grads.size(); ++i) {
    const at::Tensor expected = before[i].to(at::kDouble) * (2 / (std::sqrt(squares) + 1e-6));
    EXPECT_TRUE(at::allclose(grads[i].to(at::kDouble), expected, 1e-6, 1e-12)) << i;
  }
  {
    const core::OperatorsOnly as_on_a_gpu;
    EXPECT_NEAR(clip(twins, 2).item<double>(), norm, 1e-6 * norm);
  }
  for (std::size_t i = 0; i < grads.size(); ++i) {
    EXPECT_TRUE(at::allclose(grads[i], twins[i], 1e-6, 1e-12)) << i;
  }
}

// Blocks, chunks and threads of the sum against float64, with every kind of number at every place that matters.
TEST(Clip, SumsSquaresOfAnySizeTheSameOnAnyThreads) {
  const int before = at::get_num_threads();
  for (const std::int64_t size : {31, 32, 33, 2047, 2048, 2049, 65'535, 65'536, 65'537, 300'001}) {
    const at::Tensor x = make_gradient(1, 0, static_cast<int>(size)).to(at::kFloat);
    const double expected = x.to(at::kDouble).square().sum().item<double>();
    at::set_num_threads(1);
    const double alone = sum_of_squares(x);
    EXPECT_NEAR(alone, expected, 1e-6 * expected) << size;
    at::set_num_threads(2);
    EXPECT_EQ(sum_of_squares(x), alone) << size;
    for (const std::int64_t place : {std::int64_t{0}, size / 2, size - 1}) {
      const float kept = x[place].item<float>();
      x[place] = std::numeric_limits<float>::max();  // has no square in float32
      EXPECT_NEAR(std::sqrt(sum_of_squares(x)), std::numeric_limits<float>::max(), 1e33) << size << " at " << place;
      for (const float value : {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(),
                                std::numeric_limits<float>::quiet_NaN()}) {
        x[place] = value;
        EXPECT_FALSE(std::isfinite(sum_of_squares(x))) << value << " at " << place << " of " << size;
      }
      x[place] = kept;
    }
  }
  at::set_num_threads(before);
  EXPECT_EQ(sum_of_squares(at::zeros({0})), 0);
}

TEST(Clip, NeverWaits) {
  const at::Tensor grad = make_gradient(3, 0, 12);
  at::Tensor found_inf = at::zeros({1});
  const core::OperatorsOnly as_on_a_gpu;
  const testing::DispatchCounter counter;
  mark_non_finite(clip({grad}, 1), found_inf);
  EXPECT_TRUE(counter.waits().empty());
}

TEST(Clip, ANonFiniteNormMarksTheStep) {
  at::Tensor found_inf = at::zeros({1});
  mark_non_finite(gradient_norm({at::full({2}, 3.0F)}), found_inf);
  EXPECT_EQ(found_inf.item<float>(), 0);
  mark_non_finite(gradient_norm({at::full({2}, std::numeric_limits<float>::quiet_NaN())}), found_inf);
  EXPECT_EQ(found_inf.item<float>(), 1);
  mark_non_finite(gradient_norm({at::full({2}, 3.0F)}), found_inf);  // once marked, it stays marked
  EXPECT_EQ(found_inf.item<float>(), 1);
  EXPECT_THROW((void)clip_divisor(at::ones({}), 0), ConfigError);
  EXPECT_THROW((void)clip_divisor(at::ones({}), std::nan("")), ConfigError);
}

}  // namespace
}  // namespace stoker::optim
