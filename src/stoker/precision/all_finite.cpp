// SPDX-License-Identifier: Apache-2.0
#include "stoker/precision/all_finite.h"

#include <ATen/Parallel.h>

#include <array>
#include <bit>
#include <cstdint>

#include "stoker/core/host_value.h"
#include "stoker/core/parallel.h"

namespace stoker::precision {
namespace {

// x - x is zero for a finite number, NaN for NaN and infinity.
std::uint32_t fault(float x) { return std::bit_cast<std::uint32_t>(x - x); }

}  // namespace

bool may_check_alone(const at::Tensor& tensor) {
  return tensor.defined() && core::on_host(tensor) && tensor.scalar_type() == at::kFloat &&
         tensor.is_non_overlapping_and_dense() &&
         (static_cast<std::int64_t>(tensor.nbytes()) <= core::kOneThreadBytes || at::get_num_threads() == 1);
}

bool all_finite(const at::Tensor& tensor) {
  const float* x = tensor.const_data_ptr<float>();
  const std::int64_t count = tensor.numel();
  std::array<std::uint32_t, 16> found{};  // independent lanes and no early exit: vector instructions
  std::int64_t i = 0;
  for (; i + 16 <= count; i += 16) {
    for (std::size_t lane = 0; lane < 16; ++lane) {
      found[lane] |= fault(x[i + static_cast<std::int64_t>(lane)]);
    }
  }
  std::uint32_t any = 0;
  for (; i < count; ++i) {
    any |= fault(x[i]);
  }
  for (const std::uint32_t lane : found) {
    any |= lane;
  }
  return any == 0;
}

}  // namespace stoker::precision
