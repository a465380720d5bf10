// SPDX-License-Identifier: Apache-2.0
// Losses and normalisation layers compared with PyTorch's (make_losses.py), with gradients: ignored targets, weights,
// smoothing, the loss in pieces, running statistics, eps.
#include <ATen/ops/ones.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include "golden/golden_file.h"
#include "stoker/models/layers.h"
#include "stoker/ops/cross_entropy.h"
#include "stoker/ops/linear_cross_entropy.h"

namespace stoker::golden {
namespace {

const GoldenFile& goldens() {
  static const GoldenFile file("losses.safetensors");
  return file;
}

const auto kDtypes = {at::kDouble, at::kFloat};

at::Tensor leaf(const char* name, at::IntArrayRef shape, double low, double high, at::ScalarType dtype) {
  return uniform(name, shape, low, high).to(dtype).set_requires_grad(true);
}

TEST(GoldenLosses, CrossEntropyWithTargetsThatDoNotCount) {
  at::Tensor target = below("target", {9}, 4);
  target[2].fill_(-100), target[7].fill_(-100);
  const at::Tensor weights = at::tensor({0.5, 2.0, 1.0, 0.25}, at::kDouble);
  struct Case {
    std::string name;
    double smoothing;
    at::Tensor weights;
  };
  for (const at::ScalarType dtype : kDtypes) {
    for (const auto& [name, smoothing, class_weights] :
         {Case{"plain", 0, {}}, {"smoothed", 0.1, {}}, {"weighted", 0, weights}, {"both", 0.2, weights}}) {
      const at::Tensor logits = leaf("logits", {9, 4}, -4, 4, dtype);
      const at::Tensor sum = ops::cross_entropy_sum(logits, target, smoothing, class_weights);
      sum.backward();
      expect_near(sum, goldens()[name + ".sum"], tolerance(dtype), name);
      expect_near(logits.grad(), goldens()[name + ".grad"], tolerance(dtype), name);
    }
  }
}

TEST(GoldenLosses, MixedRowsEqualSoftTargets) {
  const at::Tensor own = below("own", {9}, 4), other = below("other", {9}, 4);
  at::Tensor share = uniform("share", {9}, 0, 1).to(at::kFloat);
  share[3].fill_(0), share[4].fill_(1);
  const at::Tensor weights = at::tensor({0.5, 2.0, 1.0, 0.25}, at::kDouble);
  struct Case {
    std::string name;
    double smoothing;
    at::Tensor weights;
  };
  for (const at::ScalarType dtype : kDtypes) {
    for (const auto& [name, smoothing, class_weights] :
         {Case{"mixed", 0, {}}, {"mixed smoothed", 0.1, {}}, {"mixed both", 0.2, weights}}) {
      const at::Tensor logits = leaf("logits", {9, 4}, -4, 4, dtype);
      const at::Tensor sum = ops::mixed_cross_entropy_sum(logits, own, other, share, smoothing, class_weights);
      sum.backward();
      expect_near(sum, goldens()[name + ".sum"], tolerance(dtype), name);
      expect_near(logits.grad(), goldens()[name + ".grad"], tolerance(dtype), name);
    }
  }
  const at::Tensor logits = leaf("logits", {9, 4}, -4, 4, at::kDouble);
  const at::Tensor mean =
      ops::mixed_cross_entropy_sum(logits, own, other, share) / ops::mixed_cross_entropy_normaliser(own, other, share);
  expect_near(mean, goldens()["mixed.mean"], tolerance(at::kDouble), "mean");
}

TEST(GoldenLosses, ChunkedCrossEntropy) {
  at::Tensor target = below("row", {11}, 13);
  target[4].fill_(-100), target[10].fill_(-100);
  for (const at::ScalarType dtype : kDtypes) {
    for (const std::int64_t rows : {1, 4, 11, 50}) {
      SCOPED_TRACE(rows);
      const at::Tensor hidden = leaf("hidden", {11, 6}, -2, 2, dtype), table = leaf("table", {13, 6}, -2, 2, dtype);
      const at::Tensor sum = ops::linear_cross_entropy_sum(hidden, table, target, rows);
      (sum * 0.3).backward();
      expect_near(sum, goldens()["chunked.sum"], tolerance(dtype), "sum");
      expect_near(hidden.grad(), goldens()["chunked.hidden"], tolerance(dtype), "hidden");
      expect_near(table.grad(), goldens()["chunked.table"], tolerance(dtype), "table");
    }
  }
}

TEST(GoldenLosses, BatchNormAndItsStatistics) {
  const at::Tensor scale = at::tensor({1.0, 3.0, 0.005}, at::kDouble).reshape({1, 3, 1, 1});
  for (const at::ScalarType dtype : kDtypes) {
    const auto mode = std::make_shared<models::SegmentMode>();
    models::BatchNorm2d layer;
    layer.mode = mode;
    layer.weight = weight("norm.weight", {3}).to(dtype).set_requires_grad(true);
    layer.bias = weight("norm.bias", {3}).to(dtype).set_requires_grad(true);
    layer.running_mean = weight("norm.running_mean", {3}).to(dtype);
    layer.running_var = weight("norm.running_var", {3}).to(dtype);
    for (const std::string number : {"0", "1"}) {
      const at::Tensor x = (uniform("norm " + number, {3, 3, 2, 2}, -1, 2) * scale).to(dtype).set_requires_grad(true);
      const at::Tensor y = layer(x);
      layer.weight.mutable_grad().reset(), layer.bias.mutable_grad().reset();
      (y * uniform("norm up " + number, {3, 3, 2, 2}, -1, 1).to(dtype)).sum().backward();
      const auto expect = [&](const at::Tensor& ours, const std::string& name) {
        expect_near(ours, goldens()["batch_norm." + number + "." + name], tolerance(dtype), name);
      };
      expect(y, "y");
      expect(x.grad(), "x_grad");
      expect(layer.weight.grad(), "weight_grad");
      expect(layer.bias.grad(), "bias_grad");
      expect(layer.running_mean, "running_mean");
      expect(layer.running_var, "running_var");
    }
    mode->training = false;
    const at::Tensor y = layer((uniform("norm 0", {3, 3, 2, 2}, -1, 2) * scale).to(dtype));
    expect_near(y, goldens()["batch_norm.eval"], tolerance(dtype), "eval");
  }
}

TEST(GoldenLosses, LayerNorm) {
  const at::Tensor scale = at::tensor({1.0, 5.0, 0.005}, at::kDouble).reshape({3, 1});
  for (const at::ScalarType dtype : kDtypes) {
    const at::Tensor gain = leaf("ln.weight", {6}, 0.5, 1.5, dtype), bias = leaf("ln.bias", {6}, -0.25, 0.25, dtype);
    const at::Tensor x = (uniform("ln x", {3, 6}, -1, 2) * scale).to(dtype).set_requires_grad(true);
    const at::Tensor y = models::LayerNorm{gain, bias}(x);
    (y * uniform("ln up", {3, 6}, -1, 1).to(dtype)).sum().backward();
    expect_near(y, goldens()["layer_norm.y"], tolerance(dtype), "y");
    expect_near(x.grad(), goldens()["layer_norm.x_grad"], tolerance(dtype), "x_grad");
    expect_near(gain.grad(), goldens()["layer_norm.weight_grad"], tolerance(dtype), "weight_grad");
    expect_near(bias.grad(), goldens()["layer_norm.bias_grad"], tolerance(dtype), "bias_grad");
  }
}

}  // namespace
}  // namespace stoker::golden
