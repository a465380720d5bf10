// SPDX-License-Identifier: Apache-2.0
// For the error that ends a run which does not fit: what holds memory, and the cheapest ways to fit. Called by Session.
#pragma once

#include <cstdint>
#include <string>

namespace stoker::job {

struct Setup;

// Bytes on the device that a run holds between steps.
struct HeldBytes {
  std::int64_t weights = 0, gradients = 0, optimizer = 0, averages = 0;
};

// "weights hold 44.7 MiB, ...; ways to fit: memory_limit= higher, ...": at most three ways, the cheapest first.
[[nodiscard]] std::string memory_advice(const Setup& setup, const HeldBytes& held);

}  // namespace stoker::job
