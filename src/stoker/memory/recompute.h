// SPDX-License-Identifier: Apache-2.0
// Activation checkpointing: chosen segments of a Trainable, and named parts of segments, keep only their inputs from
// the forward pass; the backward pass computes the rest again and stops as soon as it has what it needs. Gradients,
// generators and running statistics are those of a plain pass, bit by bit where operators repeat their results. Called
// by train::Step. One thread at a time.
//
// It uses hooks for saved tensors, and no backward pass inside of another (docs/decisions/recomputation.md). So inputs
// need no gradients, tied parameters get their sum, and lists with masks pass through.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "stoker/core/trainable.h"
#include "stoker/memory/recompute_choice.h"

namespace stoker::memory {

struct SegmentRange {
  int first = 0, last = 0;  // first ... last - 1
};

class RecomputePlan {
 public:
  // Nothing is recomputed.
  RecomputePlan() = default;
  // model outlives the plan and the graphs of its passes. Errors: those of select_segments(), and ConfigError if this
  // process runs Python.
  RecomputePlan(core::Trainable& model, const RecomputeChoice& choice);

  [[nodiscard]] bool empty() const { return segments_.empty(); }
  // What is recomputed as one, in order: "layer0", "layer1/attention", "layer1/up+gelu".
  [[nodiscard]] const std::vector<std::string>& names() const { return names_; }

  // model.forward() with recomputation: the fold over the segments, with `before` called before each one that draws;
  // before may be empty. The same as model.forward() if the plan is empty or gradients are off. ConfigError that names
  // the segment if it changes an input in place. The backward pass throws ConfigError if an input, a parameter or a
  // saved tensor was changed in place, or if a segment saves other tensors than before; and every error of the model.
  [[nodiscard]] core::TensorList forward(core::Trainable& model, core::TensorList inputs,
                                         const std::function<void(int segment)>& before = {}) const;
  // The same for some of the segments, as one rank of a pipeline has them.
  [[nodiscard]] core::TensorList forward_segments(core::Trainable& model, SegmentRange range, core::TensorList inputs,
                                                  const std::function<void(int segment)>& before = {}) const;

 private:
  using Forward = std::function<core::TensorList(core::TensorList)>;
  // forward, recomputed.
  Forward framed(const core::Trainable& model, int segment, std::string name, Forward forward);

  std::vector<Forward> segments_;  // an empty function for a segment that runs plainly
  std::vector<std::string> names_;
};

}  // namespace stoker::memory
