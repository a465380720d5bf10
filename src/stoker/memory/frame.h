// SPDX-License-Identifier: Apache-2.0
// One recomputed part of a model: its forward pass keeps its inputs instead of what autograd saves, and the backward
// pass runs it again. Made by the recomputation for each forward pass; owned by the graph, until nothing of the part is
// needed for a gradient. A backward pass may use several threads.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/SmallVector.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "stoker/core/trainable.h"
#include "stoker/memory/saved_tensors.h"
#include "stoker/memory/surroundings.h"

namespace stoker::memory {

// What the frames of a part share.
struct FramePart {
  std::string name;                                           // "segment layer1", for errors
  std::function<core::TensorList(core::TensorList)> forward;  // has no effects but on generators and statistics
  std::vector<at::Tensor> parameters;                         // that it uses
  core::TensorList statistics;                                // Trainable::norm_buffers()
  c10::Device device = c10::kCPU;
  bool draws = true;  // random numbers
};

class Frame final : public std::enable_shared_from_this<Frame> {
 public:
  // The forward pass of the part. ConfigError if it changes an input in place.
  [[nodiscard]] static core::TensorList run(std::shared_ptr<const FramePart> part, core::TensorList inputs);

  Frame(std::shared_ptr<const FramePart> part, const core::TensorList& inputs);

 private:
  class Dropping;
  class Capturing;
  class Dropped;
  // A saved tensor, in the order of saving.
  struct Slot {
    explicit Slot(const at::Tensor& saved) : sizes(saved.sizes()), dtype(saved.scalar_type()), device(saved.device()) {}
    c10::SmallVector<std::int64_t, 5> sizes;
    at::ScalarType dtype;
    c10::Device device;
    bool needed = true;        // autograd may still ask for it
    at::Tensor tensor;         // from a recomputation until it is asked for
    std::int64_t version = 0;  // of tensor, when it was saved
  };

  [[nodiscard]] bool is_input(const at::Tensor& tensor) const;
  // Whether a saved tensor stays, because something else holds it anyway: an input or a parameter.
  [[nodiscard]] bool stays(const at::Tensor& tensor) const;
  void note_inputs(const core::TensorList& inputs);
  [[nodiscard]] std::int64_t parameter_versions() const;
  [[nodiscard]] core::TensorList unpack_inputs();

  [[nodiscard]] at::Tensor fetch(std::size_t slot);
  void release(std::size_t slot);
  void recompute();
  void check_alike(std::size_t slot, const at::Tensor& tensor) const;

  std::shared_ptr<const FramePart> part_;
  Surroundings surroundings_;
  std::vector<std::unique_ptr<SavedTensor>> inputs_;  // null: undefined
  std::vector<bool> inputs_take_gradients_;
  std::vector<c10::weak_intrusive_ptr<c10::StorageImpl>> storages_;  // of the inputs of the pass that runs
  bool holds_inputs_;                                                // else the frame around this one drops them
  std::int64_t parameter_versions_;
  std::vector<Slot> slots_;
  std::size_t missing_ = 0;    // needed slots that the running recomputation has not reached
  bool running_ = true;        // its forward pass
  std::recursive_mutex lock_;  // of all that a backward pass uses
};

}  // namespace stoker::memory
