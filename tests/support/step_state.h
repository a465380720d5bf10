// SPDX-License-Identifier: Apache-2.0
// All that a training step changes, as copies that can be compared: proves that two ways to compute a step are the same
// to the bit, and that a failed one leaves no trace.
#pragma once

#include <gtest/gtest.h>

#include <initializer_list>
#include <map>
#include <string>

#include "stoker/core/stateful.h"
#include "stoker/core/trainable.h"
#include "stoker/train/step.h"

namespace stoker::testing {

using StepState = std::map<std::string, at::Tensor>;

// Weights, running statistics and reported values, and the state of the step and of `others`: optimizer, scaler,
// averages.
inline StepState step_state(const core::Trainable& model, const train::Step& step,
                            std::initializer_list<const core::Stateful*> others) {
  core::State state;
  step.save_state(state);
  for (const core::Stateful* each : others) {
    each->save_state(state);
  }
  for (const core::Parameter& each : model.parameters()) {
    state.tensors["weights." + each.name] = each.tensor.detach();
  }
  int statistics = 0;
  for (const at::Tensor& each : model.norm_buffers()) {
    state.tensors["statistics." + std::to_string(statistics++)] = each;
  }
  state.tensors["scalars"] = step.scalars();
  StepState copies;
  for (const auto& [name, tensor] : state.tensors) {
    copies[name] = tensor.clone();
  }
  return copies;
}

inline void expect_equal(const StepState& a, const StepState& b) {
  ASSERT_EQ(a.size(), b.size());
  for (const auto& [name, tensor] : a) {
    EXPECT_TRUE(tensor.equal(b.at(name))) << name;
  }
}

}  // namespace stoker::testing
