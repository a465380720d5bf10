// SPDX-License-Identifier: Apache-2.0
// What holds memory in a run, and, for the error that ends a run which does not fit, the cheapest ways to fit. Called
// by Session and before step 1.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

namespace stoker::job {

struct Setup;

// Bytes on the device that a run holds between steps, and the gradients that exist together in one: those of the
// largest parameter if the optimizer works inside backward. all_gradients: of a pass without it, as in trials.
struct HeldBytes {
  std::int64_t weights = 0, gradients = 0, optimizer = 0, averages = 0, all_gradients = 0;

  // one_by_one: the optimizer works inside backward.
  void add_gradient(std::int64_t bytes, bool one_by_one) {
    all_gradients += bytes;
    gradients = one_by_one ? std::max(gradients, bytes) : all_gradients;
  }
};

// What a run of this plan will hold, without making it.
[[nodiscard]] HeldBytes held_by_run(const Setup& setup);

// "weights hold 44.7 MiB, ...; ways to fit: memory_limit= higher, ...": at most three ways, the cheapest first.
// searches_passes: of a run with batch=auto or microbatch=auto, which recompute=auto contradicts.
[[nodiscard]] std::string memory_advice(const Setup& setup, const HeldBytes& held, bool searches_passes = false);

}  // namespace stoker::job
