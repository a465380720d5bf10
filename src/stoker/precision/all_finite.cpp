// SPDX-License-Identifier: Apache-2.0
#include "stoker/precision/all_finite.h"

#include <ATen/Parallel.h>

#include <atomic>
#include <bit>
#include <cstdint>

namespace stoker::precision {
namespace {

constexpr std::int64_t kGrain = 1 << 16;  // numbers a thread takes at least: some 10 us

// 0, or all bits where an exponent has all of its own: infinity or NaN. Without a way out, so that the loop becomes
// vector instructions.
std::uint32_t faults(const float* x, std::int64_t count) {
  constexpr std::uint32_t kExponent = 0x7F800000;
  std::uint32_t found = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::uint32_t exponent = std::bit_cast<std::uint32_t>(x[i]) & kExponent;
    found |= exponent == kExponent ? ~std::uint32_t{0} : 0;
  }
  return found;
}

}  // namespace

bool all_finite(const at::Tensor& tensor) {
  const float* x = tensor.const_data_ptr<float>();
  const std::int64_t count = tensor.numel();
  if (count <= kGrain) {
    return faults(x, count) == 0;
  }
  std::atomic<bool> finite = true;
  at::parallel_for(0, count, kGrain, [&](std::int64_t from, std::int64_t to) {
    if (faults(x + from, to - from) != 0) {
      finite.store(false, std::memory_order_relaxed);
    }
  });
  return finite;
}

}  // namespace stoker::precision
