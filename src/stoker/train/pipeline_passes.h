// SPDX-License-Identifier: Apache-2.0
// Forward and backward passes over a batch on one stage of a pipeline: this rank computes a range of the model's
// segments, and exchanges what enters and leaves it with its neighbours. Gradients are those of a plain chain in the
// same microbatches: each segment draws from the same seeds. One thread.
//
// If memory runs out on a stage, it drops what it holds and goes on to send and receive messages without values, as do
// the stages that get one. So all come to the end of the batch, where they agree to drop the step. Any other error
// leaves the messages unfinished: the rank then leaves the others (Communicator::leave).
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <exception>
#include <functional>
#include <list>
#include <memory>
#include <optional>

#include "stoker/core/batch.h"
#include "stoker/core/communicator.h"
#include "stoker/core/trainable.h"
#include "stoker/memory/recompute.h"
#include "stoker/parallel/stage_link.h"

namespace stoker::train {

struct PipelineOptions {
  int first = 0, last = 0;               // segments first ... last - 1 are this rank's
  at::ScalarType autocast = at::kFloat;  // kBFloat16 or kHalf: autocast to it
  std::uint64_t seed = 0;                // of the model's random numbers
};

// One batch, which all stages get.
struct PipelineWork {
  const core::Batch& batch;
  std::int64_t number = 0;                   // of the step
  std::int64_t passes = 1;                   // microbatches; none if the batch is empty
  const core::Normalisers& normalisers;      // of the global batch
  at::Tensor scale = {};                     // of a gradient scaler; undefined: 1
  std::function<void()> last_backward = {};  // called before the backward pass after which gradients are whole
};

class PipelinePasses {
 public:
  // stages: the ranks of one pipeline, in the order of the chain. recompute: of the whole model. All outlive it.
  // ConfigError if the range is not a part of the chain.
  PipelinePasses(core::Trainable& model, core::Communicator& stages, const memory::RecomputePlan& recompute,
                 PipelineOptions options);
  ~PipelinePasses();
  PipelinePasses(const PipelinePasses&) = delete;
  PipelinePasses& operator=(const PipelinePasses&) = delete;

  // Adds the gradients of the batch to the parameters of this rank's segments. Returns the parts of the loss on the
  // last stage, undefined elsewhere and for an empty batch: float64 [terms]. Throws what ran out of memory here, after
  // the last message.
  [[nodiscard]] at::Tensor run(const PipelineWork& work);
  // Whether the last run() computed everything on this stage. If not, memory ran out on some stage, and all drop the
  // step.
  [[nodiscard]] bool whole() const { return whole_; }

 private:
  struct Pass;

  void forward(const PipelineWork& work, std::int64_t microbatch);
  void backward(const PipelineWork& work, std::int64_t microbatch);
  void compute(const PipelineWork& work, const core::Batch& part, core::TensorList values, Pass& pass);
  void expect_next(const PipelineWork& work, std::int64_t microbatch);
  // Runs work unless there are no values any more; if memory runs out there are none from now on.
  template <typename Work>
  void attempt(const Work& work);
  // Runs what exchanges messages; again without the values if memory runs out.
  template <typename Work>
  void insist(const Work& work);
  template <typename Work>
  void insist_without_values(const Work& work);
  void drop_values(std::exception_ptr error);

  core::Trainable& model_;
  const memory::RecomputePlan& recompute_;
  PipelineOptions options_;
  int stage_, stages_;
  bool draws_;
  at::Device device_;
  std::size_t terms_;                         // of the loss
  std::optional<parallel::LinkBack> back_;    // none: the first stage
  std::optional<parallel::LinkAhead> ahead_;  // none: the last stage
  std::list<Pass> passes_;                    // that wait for their backward
  at::Tensor loss_parts_;
  std::int64_t largest_pass_ = 0;
  bool whole_ = true;
  std::exception_ptr error_;  // memory ran out here
};

}  // namespace stoker::train
