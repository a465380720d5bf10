// SPDX-License-Identifier: Apache-2.0
#include "stoker/optim/plain_loops.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <vector>

#include "stoker/core/parallel.h"

namespace stoker::optim {
namespace {

constexpr std::int64_t kLanes = 32;    // independent sums, so that the loop uses vector instructions
constexpr std::int64_t kBlock = 2048;  // numbers added up in float32: 64 per lane
constexpr std::int64_t kChunk = core::kOneThreadBytes / sizeof(float);  // numbers that a thread takes at once

double in_float64(const float* x, std::int64_t count) {
  return std::accumulate(x, x + count, 0.0, [](double sum, double value) { return sum + value * value; });
}

double of_block(const float* x, std::int64_t count) {
  const std::int64_t whole = count - count % kLanes;
  std::array<float, kLanes> sums{};
  for (std::int64_t i = 0; i < whole; i += kLanes) {
    for (std::int64_t lane = 0; lane < kLanes; ++lane) {
      sums[static_cast<std::size_t>(lane)] += x[i + lane] * x[i + lane];
    }
  }
  const double sum = std::accumulate(sums.begin(), sums.end(), 0.0) + in_float64(x + whole, count - whole);
  return std::isfinite(sum) ? sum : in_float64(x, count);  // squares of numbers beyond 1e19 overflow in float32
}

double of_chunk(const float* x, std::int64_t count) {
  double sum = 0;
  for (std::int64_t i = 0; i < count; i += kBlock) {
    sum += of_block(x + i, std::min(kBlock, count - i));
  }
  return sum;
}

// visit(first, count) for each chunk of the numbers.
template <typename Visit>
void each_chunk(std::int64_t numbers, Visit visit) {
  if (numbers <= kChunk) {  // inline, without the overhead of parallel_for
    visit(std::int64_t{0}, numbers);
    return;
  }
  core::parallel_for((numbers + kChunk - 1) / kChunk, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      visit(i * kChunk, std::min(kChunk, numbers - i * kChunk));
    }
  });
}

void lerp_chunk(float* __restrict__ a, const float* __restrict__ b, std::int64_t count, float weight) {
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

}  // namespace

double sum_of_squares(const at::Tensor& tensor) {
  const float* x = tensor.const_data_ptr<float>();
  const std::int64_t numbers = tensor.numel();
  if (numbers <= kChunk) {
    return of_chunk(x, numbers);
  }
  std::vector<double> sums(static_cast<std::size_t>((numbers + kChunk - 1) / kChunk));
  each_chunk(numbers, [&](std::int64_t first, std::int64_t count) {
    sums[static_cast<std::size_t>(first / kChunk)] = of_chunk(x + first, count);
  });
  return std::accumulate(sums.begin(), sums.end(), 0.0);
}

void lerp(const at::Tensor& to, const at::Tensor& from, float weight) {
  float* a = to.mutable_data_ptr<float>();
  const float* b = from.const_data_ptr<float>();
  each_chunk(to.numel(),
             [&](std::int64_t first, std::int64_t count) { lerp_chunk(a + first, b + first, count, weight); });
}

}  // namespace stoker::optim
