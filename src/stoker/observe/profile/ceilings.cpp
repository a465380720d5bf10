// SPDX-License-Identifier: Apache-2.0
#include "stoker/observe/profile/ceilings.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/linspace.h>
#include <ATen/ops/mm.h>

#include <algorithm>
#include <exception>
#include <functional>
#include <limits>

#include "stoker/base/clock.h"
#include "stoker/device/backend.h"

namespace stoker::observe::profile {
namespace {

constexpr double kEnough = 0.01;                          // seconds of one product
constexpr double kBudget = 0.08;                          // seconds of one ceiling's repetitions
constexpr std::int64_t kSmallest = 512, kLargest = 8192;  // rows of a product

at::ScalarType scalar_type(const std::string& type) {
  return type == "bfloat16" ? at::kBFloat16 : type == "half" ? at::kHalf : type == "double" ? at::kDouble : at::kFloat;
}

// The fastest of several runs, after one that makes kernels and pages ready.
double fastest(c10::Device device, const std::function<void()>& work) {
  const device::Backend& backend = device::backend_for(device);
  const auto timed = [&] {
    const Stopwatch watch;
    work();
    backend.synchronize(device);
    return watch.seconds();
  };
  (void)timed();
  const Stopwatch all;
  double best = std::numeric_limits<double>::infinity();
  for (int i = 0; i < 3 || (i < 20 && all.seconds() < kBudget); ++i) {
    best = std::min(best, timed());
  }
  return best;
}

// Grows until a product takes long enough that its start does not count.
double product_rate(c10::Device device, at::ScalarType type) {
  double rate = 0;
  for (std::int64_t rows = kSmallest; rows <= kLargest; rows *= 2) {
    const auto values = at::linspace(-1, 1, rows * rows, at::TensorOptions(device).dtype(at::kFloat));
    const at::Tensor left = values.view({rows, rows}).to(type), right = left.t().contiguous();
    at::Tensor result = at::empty({rows, rows}, left.options());
    const double seconds = fastest(device, [&] { at::mm_out(result, left, right); });
    const auto side = static_cast<double>(rows);
    rate = std::max(rate, 2 * side * side * side / seconds);
    if (seconds > kEnough) {
      break;
    }
  }
  return rate;
}

double copy_rate(c10::Device device) {
  const std::int64_t bytes = device.is_cpu() ? 64 << 20 : 256 << 20;
  const at::Tensor from = at::empty({bytes}, at::TensorOptions(device).dtype(at::kByte)).fill_(1);
  const at::Tensor to = at::empty_like(from);
  return 2 * static_cast<double>(bytes) / fastest(device, [&] { to.copy_(from); });
}

// Without memory, or without a kernel for the type, there is no ceiling.
double measured(const std::function<double()>& measure) {
  try {
    return measure();
  } catch (const std::exception&) {
    return -1;
  }
}

}  // namespace

double Ceilings::product(const std::string& type) const {
  const auto found = std::ranges::find(products, type, &ProductCeiling::type);
  return found == products.end() ? -1 : found->flops_per_second;
}

Ceilings measure_ceilings(c10::Device device, const std::vector<std::string>& types) {
  const at::NoGradGuard no_grad;
  Ceilings ceilings;
  for (const std::string& type : types) {
    const double rate = measured([&] { return product_rate(device, scalar_type(type)); });
    if (rate > 0) {
      ceilings.products.push_back({type, rate});
    }
  }
  ceilings.bytes_per_second = measured([&] { return copy_rate(device); });
  return ceilings;
}

}  // namespace stoker::observe::profile
