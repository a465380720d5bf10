// SPDX-License-Identifier: Apache-2.0
// Compares a network with a golden file of tests/golden: names and shapes, weights from a formula, gradients in few
// numbers. The C++ counterpart of tests/golden/network_table.py.
#pragma once

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "stoker/models/network.h"

namespace stoker::models {

using GoldenState = std::vector<std::pair<std::string, std::vector<std::int64_t>>>;

// The same as in network_table.py.
inline at::Tensor wave(at::IntArrayRef shape, double phase = 0) {
  const at::Tensor i = at::arange(c10::multiply_integers(shape), at::kDouble);
  return (i * (0.7 + 0.013 * i) + phase).sin().reshape(shape);
}

// Checks that the network has exactly these tensors, and fills them, in float64.
inline void fill_from_golden(Network& network, const GoldenState& state) {
  const at::NoGradGuard no_grad;
  network.to(at::kCPU, at::kDouble);
  std::map<std::string, at::Tensor> tensors;
  for (const core::Parameter& parameter : network.parameters()) {
    tensors[parameter.name] = parameter.tensor;
  }
  for (const core::NamedTensor& buffer : network.buffers()) {
    tensors[buffer.name] = buffer.tensor;
  }
  EXPECT_EQ(tensors.size(), state.size());
  double place = 0;
  for (const auto& [name, shape] : state) {
    ASSERT_TRUE(tensors.contains(name)) << name;
    const at::Tensor& tensor = tensors.at(name);
    ASSERT_EQ(tensor.sizes().vec(), shape) << name;
    const at::Tensor value = wave(shape, place++);
    if (tensor.dim() > 1) {
      const double fan_in = static_cast<double>(tensor.numel()) / static_cast<double>(tensor.size(0));
      tensor.copy_(value * std::sqrt(2 / fan_in));
    } else if (name.ends_with("weight") || name.ends_with("running_var")) {
      tensor.copy_(value * 0.1 + 1);
    } else {
      tensor.copy_(value * 0.1);
    }
  }
}

// tolerance: relative to the largest value.
inline void expect_golden(const at::Tensor& tensor, const std::vector<double>& golden, double tolerance) {
  const at::Tensor flat = tensor.detach().flatten();
  ASSERT_EQ(flat.numel(), static_cast<std::int64_t>(golden.size()));
  double largest = 0;
  for (const double value : golden) {
    largest = std::max(largest, std::abs(value));
  }
  for (std::size_t i = 0; i < golden.size(); ++i) {
    EXPECT_NEAR(flat[static_cast<std::int64_t>(i)].item<double>(), golden[i], tolerance * largest) << "value " << i;
  }
}

// golden: for every parameter, in the file's order, the sum of gradient * wave. tolerance: relative to the magnitudes
// of that sum's terms, so that a small gradient counts as much as a large one. It is relative to at least a thousandth
// of the largest sum, because a gradient that is zero except for rounding (a key's bias) may have any small value.
inline void expect_golden_gradients(const Network& network, const GoldenState& state, const std::vector<double>& golden,
                                    double tolerance) {
  std::map<std::string, at::Tensor> parameters;
  for (const core::Parameter& parameter : network.parameters()) {
    parameters[parameter.name] = parameter.tensor;
  }
  double largest = 0;
  for (const double value : golden) {
    largest = std::max(largest, std::abs(value));
  }
  std::size_t i = 0;
  for (const auto& [name, shape] : state) {
    if (!parameters.contains(name)) {
      continue;  // a running statistic
    }
    const at::Tensor gradient = parameters.at(name).grad();
    ASSERT_TRUE(gradient.defined()) << name;
    const at::Tensor terms = gradient * wave(shape, 1);
    EXPECT_NEAR(terms.sum().item<double>(), golden.at(i++),
                tolerance * std::max(terms.abs().sum().item<double>(), 1e-3 * largest))
        << name;
  }
  EXPECT_EQ(i, golden.size());
}

}  // namespace stoker::models
