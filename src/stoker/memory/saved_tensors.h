// SPDX-License-Identifier: Apache-2.0
// Decides on a thread what autograd keeps of the tensors that operators save for their gradients. The only place that
// knows torch's hooks for saved tensors. Called by the recomputation and its measurements.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>

namespace stoker::memory {

// What is kept instead of one saved tensor. It is destroyed when autograd no longer needs the tensor.
class SavedTensor {
 public:
  virtual ~SavedTensor() = default;
  // The tensor; called by each backward pass that needs it, on the thread that runs this part of the pass. Errors leave
  // the backward pass with their types.
  [[nodiscard]] virtual at::Tensor unpack() = 0;
};

class SavedTensorRule {
 public:
  virtual ~SavedTensorRule() = default;
  // tensor: as autograd saves it, with its graph. To hold it would make a cycle if its own operator saves it: hold
  // tensor.detach(). Never null. Gradients are off during the call. Saved numbers (wrapped scalars) do not come here.
  [[nodiscard]] virtual std::unique_ptr<SavedTensor> pack(const at::Tensor& tensor) = 0;
};

// Puts the hooks into torch, once per process; call it while no backward pass runs. ConfigError if this process runs
// Python: torch's Python module has hooks of its own in the same place.
void hook_saved_tensors();

// While it lives, what operators save on this thread goes through this rule, which outlives it. Needs the hooks. Scopes
// nest, and the inner one counts. Without a scope torch keeps its tensors itself, at the cost of reading a pointer.
class SavedTensorScope {
 public:
  explicit SavedTensorScope(SavedTensorRule& rule);
  ~SavedTensorScope();
  SavedTensorScope(const SavedTensorScope&) = delete;
  SavedTensorScope& operator=(const SavedTensorScope&) = delete;

 private:
  SavedTensorRule* outer_;
};

// The rule of the innermost scope of this thread; null: none.
[[nodiscard]] SavedTensorRule* saved_tensor_rule();

// A saved tensor that is simply kept. what: "segment layer1", for the error (ConfigError) that replaces torch's if the
// tensor was changed in place in the meantime.
[[nodiscard]] std::unique_ptr<SavedTensor> keep_saved(const at::Tensor& tensor, std::string what);

}  // namespace stoker::memory
