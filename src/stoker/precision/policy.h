// SPDX-License-Identifier: Apache-2.0
// How float32 arithmetic may be done: TF32 on tensor cores, cuDNN's algorithm search, deterministic kernels; and the
// half model with float32 normalisation. Set before step 1 by job, and by study around what it measures; the switches
// hold for the whole process.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "stoker/core/trainable.h"

namespace stoker::precision {

struct ArithmeticPolicy {
  bool tf32 = true;             // matrix products and convolutions of float32 tensors on CUDA with 10 mantissa bits
  bool cudnn_benchmark = true;  // time cuDNN's algorithms per shape; off when shapes vary
  bool deterministic = false;   // same bits on every run: refuses kernels that cannot, and switches the search off
};

// Process-wide, for the operations that follow. Never touches a device itself.
void apply(const ArithmeticPolicy& policy);
// What is in force now.
[[nodiscard]] ArithmeticPolicy current_policy();

// Switches cuDNN's search off for a pass over few samples: the tail of an epoch has a shape of its own, and a search
// takes longer than one pass gains by it.
class SearchGuard {
 public:
  // largest: samples of the largest pass so far, which it keeps up to date. The even parts of a batch differ by one
  // sample, and all of them come again.
  SearchGuard(std::int64_t samples, std::int64_t& largest);
  ~SearchGuard();
  SearchGuard(const SearchGuard&) = delete;
  SearchGuard& operator=(const SearchGuard&) = delete;

 private:
  bool switched_off_;
};

// Turns parameters into dtype (kHalf or kBFloat16), in place, but for those of norms (Role::kNorm), which stay float32:
// handles stay valid, gradients are dropped. Running statistics are no parameters and stay as they are.
void convert_to_half(const std::vector<core::Parameter>& parameters, at::ScalarType dtype = at::kHalf);

}  // namespace stoker::precision
