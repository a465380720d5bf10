// SPDX-License-Identifier: Apache-2.0
// A forward and a backward pass of a chain of segments with a given recomputation, and all that it leaves behind, so
// that tests compare it with a plain pass bit by bit.
#pragma once

#include <ATen/Context.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/rand.h>
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "stoker/core/trainable.h"
#include "stoker/memory/recompute.h"
#include "stoker/models/network.h"
#include "stoker/precision/autocast.h"

namespace stoker::testing {

// Values without a generator.
inline at::Tensor wave_of(at::IntArrayRef shape, double phase = 0) {
  return (at::arange(c10::multiply_integers(shape), at::kDouble) * 0.71 + phase).sin().reshape(shape).to(at::kFloat);
}

// A Trainable that is only a chain: no batches, no loss.
class Chain : public core::Trainable {
 public:
  [[nodiscard]] core::TensorList inputs(const core::Batch&) const override { return {}; }
  [[nodiscard]] core::LossTerms loss(const core::TensorList&, const core::Batch&) const override { return {}; }
};

// A network, moved to device.
class NetworkChain final : public Chain {
 public:
  explicit NetworkChain(std::unique_ptr<models::Network> network, c10::Device device = c10::kCPU)
      : network_(std::move(network)) {
    network_->to(device);
  }
  [[nodiscard]] models::Network& network() { return *network_; }
  [[nodiscard]] const std::vector<core::Parameter>& parameters() const override { return network_->parameters(); }
  [[nodiscard]] core::TensorList norm_buffers() const override { return network_->norm_buffers(); }
  [[nodiscard]] int segments() const override { return network_->segments(); }
  [[nodiscard]] std::string segment_name(int segment) const override { return network_->segment(segment).name; }
  [[nodiscard]] std::vector<std::string> inner_segments(int segment) const override {
    std::vector<std::string> names;
    for (const models::InnerSegment& each : network_->segment(segment).inner) {
      names.push_back(each.name);
    }
    return names;
  }
  [[nodiscard]] core::TensorList forward_segment(int segment, core::TensorList inputs) override {
    return network_->forward_segment(segment, std::move(inputs));
  }
  [[nodiscard]] core::TensorList forward_inner(int segment, int inner, core::TensorList inputs) override {
    return network_->segment(segment).inner.at(static_cast<std::size_t>(inner)).forward(std::move(inputs));
  }
  [[nodiscard]] bool draws(int segment) const override { return network_->segment(segment).draws; }

 private:
  std::unique_ptr<models::Network> network_;
};

inline memory::RecomputePlan recompute_plan(core::Trainable& model, const std::string& text) {
  return {model, memory::parse_recompute(text)};
}

// A number whose gradient differs in each element of the outputs.
inline at::Tensor weighted_sum(const core::TensorList& outputs) {
  at::Tensor sum;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i].defined() && outputs[i].is_floating_point()) {
      const at::Tensor weights = wave_of(outputs[i].sizes(), static_cast<double>(i)).to(outputs[i].device());
      const at::Tensor term = (outputs[i].to(at::kFloat) * weights).sum();
      sum = sum.defined() ? sum + term : term;
    }
  }
  return sum;
}

struct PassResult {
  core::TensorList outputs, gradients, statistics;  // gradients: undefined where there is none
  at::Tensor drawn;                                 // by the next call of a generator
};

// Starts from the same generators and statistics each time; leaves the model without gradients.
inline PassResult run_pass(core::Trainable& model, const core::TensorList& inputs, const std::string& recompute,
                           at::ScalarType autocast = at::kFloat) {
  const c10::Device device = model.parameters().front().tensor.device();
  at::Generator generator = at::globalContext().defaultGenerator(device);
  generator.set_current_seed(7);
  for (const at::Tensor& each : model.norm_buffers()) {
    each.fill_(1);
  }
  const memory::RecomputePlan plan = recompute_plan(model, recompute);
  PassResult result;
  at::Tensor loss;
  {
    const bool mixed = autocast != at::kFloat;
    const precision::AutocastGuard guard(device.type(), mixed ? autocast : at::kBFloat16, mixed);
    const core::TensorList outputs = plan.forward(model, inputs);
    loss = weighted_sum(outputs);
    for (const at::Tensor& each : outputs) {
      result.outputs.push_back(each.defined() ? each.detach().clone() : each);
    }
  }
  loss.backward();
  for (const core::Parameter& each : model.parameters()) {
    result.gradients.push_back(std::exchange(at::Tensor(each.tensor).mutable_grad(), {}));
  }
  for (const at::Tensor& each : model.norm_buffers()) {
    result.statistics.push_back(each.clone());
  }
  result.drawn = at::rand({4}, at::TensorOptions(device));
  return result;
}

inline void expect_equal(const core::TensorList& a, const core::TensorList& b, const char* what) {
  ASSERT_EQ(a.size(), b.size()) << what;
  for (std::size_t i = 0; i < a.size(); ++i) {
    ASSERT_EQ(a[i].defined(), b[i].defined()) << what << ' ' << i;
    EXPECT_TRUE(!a[i].defined() || (a[i].scalar_type() == b[i].scalar_type() && a[i].equal(b[i]))) << what << ' ' << i;
  }
}

inline void expect_same_pass(const PassResult& a, const PassResult& b) {
  expect_equal(a.outputs, b.outputs, "output");
  expect_equal(a.gradients, b.gradients, "gradient");
  expect_equal(a.statistics, b.statistics, "statistics");
  EXPECT_TRUE(a.drawn.equal(b.drawn)) << "the generator is elsewhere";
}

}  // namespace stoker::testing
