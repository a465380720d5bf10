// SPDX-License-Identifier: Apache-2.0
#include "stoker/optim/small_tensors.h"

#include <array>

namespace stoker::optim {

double sum_of_squares(const at::Tensor& tensor) {
  constexpr std::int64_t kLanes = 8;  // sums of their own, so that the loop becomes vector instructions
  const float* x = tensor.const_data_ptr<float>();
  const std::int64_t count = tensor.numel(), whole = count - count % kLanes;
  std::array<double, kLanes> sums{};
  for (std::int64_t i = 0; i < whole; i += kLanes) {
    for (std::int64_t lane = 0; lane < kLanes; ++lane) {
      const double value = x[i + lane];
      sums[static_cast<std::size_t>(lane)] += value * value;
    }
  }
  double sum = 0;
  for (const double each : sums) {
    sum += each;
  }
  for (std::int64_t i = whole; i < count; ++i) {
    sum += static_cast<double>(x[i]) * x[i];
  }
  return sum;
}

void multiply(const at::Tensor& tensor, float factor) {
  float* x = tensor.mutable_data_ptr<float>();
  const std::int64_t count = tensor.numel();
  for (std::int64_t i = 0; i < count; ++i) {
    x[i] *= factor;
  }
}

void lerp(const at::Tensor& to, const at::Tensor& from, float weight) {
  float* __restrict__ a = to.mutable_data_ptr<float>();
  const float* __restrict__ b = from.const_data_ptr<float>();
  const std::int64_t count = to.numel();
  if (weight < 0.5F) {
    for (std::int64_t i = 0; i < count; ++i) {
      a[i] += weight * (b[i] - a[i]);
    }
  } else {
    for (std::int64_t i = 0; i < count; ++i) {
      a[i] = b[i] - (b[i] - a[i]) * (1 - weight);
    }
  }
}

}  // namespace stoker::optim
