// SPDX-License-Identifier: Apache-2.0
// Policy for float32 arithmetic: TF32 on tensor cores, cuDNN's algorithm search, deterministic kernels; and the half
// model with float32 normalisation. Set before step 1 by job, and by study around its measurements; the switches are
// process-wide.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "stoker/core/trainable.h"

namespace stoker::precision {

struct ArithmeticPolicy {
  bool tf32 = true;             // matrix products and convolutions of float32 tensors on CUDA with 10 mantissa bits
  bool cudnn_benchmark = true;  // time cuDNN's algorithms per shape; off when shapes vary
  bool deterministic = false;   // same bits in every run: rejects kernels that cannot, and turns the search off
};

// Process-wide, for all following operations. Does not use a device itself.
void apply(const ArithmeticPolicy& policy);

// Turns cuDNN's search off for a pass over few samples: the tail of an epoch has its own shape, and a search takes
// longer than it saves in one pass.
class SearchGuard {
 public:
  // largest: samples of the largest pass so far; updated here. Equal parts of a batch differ by at most one sample, and
  // all of them occur again.
  SearchGuard(std::int64_t samples, std::int64_t& largest);
  ~SearchGuard();
  SearchGuard(const SearchGuard&) = delete;
  SearchGuard& operator=(const SearchGuard&) = delete;

 private:
  bool switched_off_;
};

// Converts parameters to dtype (kHalf or kBFloat16) in place, except for parameters of norms (Role::kNorm), which stay
// float32. Handles stay valid, gradients are dropped. Running statistics are not parameters and stay unchanged.
void convert_to_half(const std::vector<core::Parameter>& parameters, at::ScalarType dtype = at::kHalf);

}  // namespace stoker::precision
