// SPDX-License-Identifier: Apache-2.0
// One pass over a split without gradients: sums on the device, one copy to the host at the end. Called by the loop
// after every epoch or every eval_every steps, and by `stoker eval`.
#pragma once

#include <functional>
#include <vector>

#include "stoker/core/batch_source.h"
#include "stoker/core/communicator.h"
#include "stoker/core/trainable.h"
#include "stoker/memory/batch_split.h"

namespace stoker::train {

// What else happens during an evaluation.
struct EvaluationHooks {
  // Receives the outputs of each batch, or of each part of a batch that had to be split, still on the device.
  std::function<void(const core::TensorList& outputs, const core::Batch&)> visit = {};
  // Called after each batch; if it returns false, the sums are dropped and the result is empty.
  std::function<bool(const core::Batch&)> go_on = {};
  // Called after a batch whose outputs or metrics require a gradient: user code turned gradients on.
  std::function<void()> with_gradients = {};
  // Asked when memory runs out; null: the error ends the evaluation.
  memory::BatchSplit* split = nullptr;
};

// Totals of Trainable::evaluate over all batches of one epoch of source, on the CPU. The model must be in evaluation
// mode. It computes without gradients, with autocast to dtype (kFloat: none), which casts each weight once. DataError
// if the source has no batch. With several ranks, the totals of this rank.
[[nodiscard]] std::vector<core::NamedTensor> evaluate(core::Trainable& model, core::BatchSource& source,
                                                      at::ScalarType dtype, const EvaluationHooks& hooks = {});

// The totals of all ranks, from those of each rank; empty if one rank's are empty. A collective call.
[[nodiscard]] std::vector<core::NamedTensor> sum_over_ranks(std::vector<core::NamedTensor> totals,
                                                            core::Communicator& ranks);

// Evaluation mode for a scope; training mode after it.
class EvaluationMode {
 public:
  explicit EvaluationMode(core::Trainable& model) : model_(model) { model_.set_training(false); }
  ~EvaluationMode() { model_.set_training(true); }
  EvaluationMode(const EvaluationMode&) = delete;
  EvaluationMode& operator=(const EvaluationMode&) = delete;

 private:
  core::Trainable& model_;
};

}  // namespace stoker::train
