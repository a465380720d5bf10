// SPDX-License-Identifier: Apache-2.0
// A small network with a loss of two terms with different normalisers, for tests that accumulation is exact.
// "x" float [B, 6], "y" int64 [B] in 0 ... 3, "mask" float [B, 4] of zeros and ones.
#pragma once

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tanh.h>

#include <string>
#include <vector>

#include "stoker/core/trainable.h"
#include "stoker/ops/cross_entropy.h"

namespace stoker::testing {

class ToyTrainable : public core::Trainable {
 public:
  explicit ToyTrainable(at::ScalarType dtype = at::kDouble, at::Tensor class_weights = {})
      : class_weights_(std::move(class_weights)) {
    const auto make = [&](const char* name, at::IntArrayRef shape, core::Role role) {
      std::int64_t numel = 1;
      for (const std::int64_t size : shape) {
        numel *= size;
      }
      // Fixed values without a generator: tests must not depend on earlier draws.
      at::Tensor value =
          at::arange(numel, at::TensorOptions(at::kDouble)).mul(0.7).sin().mul(0.5).reshape(shape).to(dtype);
      value.set_requires_grad(true);
      parameters_.push_back({name, value, role});
    };
    make("hidden.weight", {8, 6}, core::Role::kLinear);
    make("hidden.bias", {8}, core::Role::kBias);
    make("head.weight", {4, 8}, core::Role::kLinear);
    make("head.bias", {4}, core::Role::kBias);
  }

  [[nodiscard]] const std::vector<core::Parameter>& parameters() const override { return parameters_; }
  [[nodiscard]] const std::vector<core::NamedTensor>& buffers() const override { return buffers_; }
  [[nodiscard]] core::TensorList inputs(const core::Batch& batch) const override { return {batch["x"]}; }
  [[nodiscard]] core::TensorList forward_segment(int, core::TensorList inputs) override {
    const at::Tensor hidden = at::tanh(at::linear(inputs[0], parameters_[0].tensor, parameters_[1].tensor));
    return {at::linear(hidden, parameters_[2].tensor, parameters_[3].tensor)};
  }
  [[nodiscard]] std::vector<std::string> loss_names() const override { return {"cross_entropy", "masked"}; }
  [[nodiscard]] core::Normalisers normalisers(const core::Batch& batch) const override {
    return at::stack({ops::cross_entropy_normaliser(batch["y"], class_weights_), batch["mask"].sum().to(at::kDouble)});
  }
  [[nodiscard]] core::LossTerms loss(const core::TensorList& outputs, const core::Batch& batch) const override {
    return {{"cross_entropy", 1, ops::cross_entropy_sum(outputs[0], batch["y"], 0.1, class_weights_)},
            {"masked", 0.25, (outputs[0] * outputs[0] * batch["mask"]).sum()}};
  }
  [[nodiscard]] std::vector<core::NamedTensor> evaluate(const core::TensorList& outputs,
                                                        const core::Batch& batch) const override {
    return {{"right", outputs[0].argmax(1).eq(batch["y"]).sum()},
            {"samples", at::scalar_tensor(batch.size(), at::kLong)}};
  }
  [[nodiscard]] std::vector<core::MetricValue> metrics(const std::vector<core::NamedTensor>& totals) const override {
    return {{"accuracy", totals[0].tensor.item<double>() / totals[1].tensor.item<double>(), true}};
  }
  void set_training(bool) override {}

 private:
  std::vector<core::Parameter> parameters_;
  std::vector<core::NamedTensor> buffers_;
  at::Tensor class_weights_;
};

// size samples that depend on first, so that batches differ.
inline core::Batch toy_batch(std::int64_t size, at::ScalarType dtype = at::kDouble, std::int64_t first = 0) {
  std::vector<std::int64_t> indices;
  for (std::int64_t i = 0; i < size; ++i) {
    indices.push_back(first + i);
  }
  core::Batch batch({0, 0}, std::move(indices));
  const at::Tensor ramp = at::arange(first * 6, (first + size) * 6, at::TensorOptions(at::kDouble));
  batch.set("x", ramp.mul(1.3).cos().reshape({size, 6}).to(dtype));
  batch.set("y", ramp.reshape({size, 6}).select(1, 0).mul(0.77).sin().mul(2).add(2).to(at::kLong).clamp(0, 3));
  const at::Tensor mask_ramp = at::arange(first * 4, (first + size) * 4, at::TensorOptions(at::kDouble));
  batch.set("mask", mask_ramp.mul(2.1).sin().gt(0.3).reshape({size, 4}).to(dtype));
  return batch;
}

}  // namespace stoker::testing
