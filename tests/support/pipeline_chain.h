// SPDX-License-Identifier: Apache-2.0
// A chain of six segments for tests of pipelines: dropout, a skip connection that crosses segments, a mask of integers
// and an input without gradients that go along, a list that becomes shorter, a tensor that nobody uses after it was
// handed on, and a segment that changes its input in place. The batches of toy_batch().
#pragma once

#include <ATen/ops/dropout.h>
#include <ATen/ops/relu.h>

#include <functional>

#include "support/toy_trainable.h"

namespace stoker::testing {

class PipelineChain : public ToyTrainable {
 public:
  explicit PipelineChain(bool drops = true) : drops_(drops), parameters_(ToyTrainable::parameters()) {
    for (const char* name : {"second", "third"}) {
      at::Tensor value = at::arange(64, at::TensorOptions(at::kDouble)).mul(0.9).cos().mul(0.4).reshape({8, 8});
      value.set_requires_grad(true);
      parameters_.push_back({std::string(name) + ".weight", value, core::Role::kLinear});
    }
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      parameters_[i].segments = {std::array{0, 0, 5, 5, 1, 3}.at(i)};
    }
  }

  [[nodiscard]] const std::vector<core::Parameter>& parameters() const override { return parameters_; }
  [[nodiscard]] int segments() const override { return 6; }
  [[nodiscard]] std::string segment_name(int segment) const override { return "layer" + std::to_string(segment); }
  [[nodiscard]] bool draws(int segment) const override { return drops_ && segment < 2; }
  [[nodiscard]] core::TensorList inputs(const core::Batch& batch) const override {
    return {batch["x"], batch["mask"].sum(1).to(at::kLong), batch["x"]};
  }
  [[nodiscard]] core::TensorList forward_segment(int segment, core::TensorList values) override {
    if (on_forward) {
      on_forward(segment);
    }
    at::Tensor& h = values[0];
    switch (segment) {
      case 0:
        h = at::tanh(at::linear(dropped(h), weight(0), weight(1)));
        values.push_back(h);  // the skip: the same tensor twice
        break;
      case 1: h = at::linear(dropped(h), weight(4)); break;
      case 2: h = h.relu_() * 1.5; break;
      case 3:
        h = at::tanh(at::linear(h, weight(5)));
        values[3] = values[3] * 2;
        break;
      case 4:
        h = h + values[3] + values[2].sum(1, /*keepdim=*/true);
        values.erase(values.begin() + 2);
        break;
      default: return {at::linear(h, weight(2), weight(3)) * (values[1] + 1).unsqueeze(1)};
    }
    return values;
  }

  std::function<void(int segment)> on_forward;

 private:
  [[nodiscard]] const at::Tensor& weight(std::size_t i) const { return parameters_[i].tensor; }
  [[nodiscard]] at::Tensor dropped(const at::Tensor& values) const {
    return drops_ ? at::dropout(values, 0.3, /*train=*/true) : values;
  }

  bool drops_;
  std::vector<core::Parameter> parameters_;
};

}  // namespace stoker::testing
