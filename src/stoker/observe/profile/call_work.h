// SPDX-License-Identifier: Apache-2.0
// What an operator had to do at least: arithmetic and memory traffic, from the shapes of its arguments. Formulas of our
// own, since Kineto counts no convolution's backward, no attention and no bytes. Thread-safe: no state.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "stoker/observe/profile/recorded.h"

namespace stoker::observe::profile {

struct CallWork {
  // Floating-point operations of matrix products, convolutions and attention: a multiplication and an addition are two.
  // 0: none, or unknown. A causal mask halves nothing, as in PyTorch's FlopCounterMode.
  double flops = 0;
  // Of operators that are limited by memory: bytes of their inputs and of their output, each moved once. 0: unknown.
  double bytes = 0;
};
[[nodiscard]] CallWork work_of(const Call& call);

// Of its first tensor: "float", "bfloat16"; empty without one.
[[nodiscard]] std::string type_of(const Call& call);
// "[64,3,32,32] [16,3,3,3]": of the tensors among its first arguments; empty without one.
[[nodiscard]] std::string shapes_of(const Call& call);

// Reads or writes by index, or by a mask: gather, scatter, embedding, masked_fill, ... Also for names of kernels.
[[nodiscard]] bool is_indexing(std::string_view name);

}  // namespace stoker::observe::profile
