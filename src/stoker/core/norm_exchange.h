// SPDX-License-Identifier: Apache-2.0
// What the batch norms of several ranks exchange, so that their statistics are those of the samples of all ranks: a
// small message for each norm in the forward and in the backward pass. All messages have one size, so a rank without
// samples, or one whose pass failed, takes part with zeros and knows no layer. Made by train::Step, called by layers
// (ops/sync_batch_norm.h); one thread at a time.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "stoker/core/communicator.h"

namespace stoker::core {

// The norms that a pass computes statistics for.
struct NormCount {
  std::int64_t norms = 0;
  std::int64_t channels = 0;  // of the widest one
};

class NormExchange {
 public:
  // ranks outlive it; their collectives are only those of this object, or of an equal order on all ranks.
  NormExchange(Communicator& ranks, NormCount norms, at::Device device);

  // A step begins, on all ranks with this number of passes.
  void begin(std::int64_t passes);
  // values: float64 1-dim, at most 1 + 2 channels. Returns those of all ranks, a row each, until the next call. Error
  // if a pass has more norms than announced.
  [[nodiscard]] at::Tensor gather(const at::Tensor& values);
  // A pass of which this rank has no samples.
  void skip_pass();
  // All that is left of the step; without effect if nothing is.
  void skip_rest();

 private:
  void exchange();
  void skip_until(std::int64_t left);

  Communicator& ranks_;
  const std::int64_t per_pass_;
  at::Tensor own_, all_;   // float64
  std::int64_t left_ = 0;  // messages of this step
};

}  // namespace stoker::core
