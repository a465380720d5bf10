// SPDX-License-Identifier: Apache-2.0
#include "stoker/observe/profile/ceilings.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/linspace.h>
#include <ATen/ops/mm.h>

#include <algorithm>
#include <cmath>
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

// Bytes that a measurement may take: the run needs its memory again, and other processes their own.
double allowance(c10::Device device) {
  constexpr double kShare = 0.25, kUnknown = 128 << 20;
  const std::int64_t free = device::backend_for(device).memory(device).free;
  return free < 0 ? kUnknown : kShare * static_cast<double>(free);
}

double product_rate(c10::Device device, at::ScalarType type, std::int64_t rows) {
  const auto values = at::linspace(-1, 1, rows * rows, at::TensorOptions(device).dtype(at::kFloat));
  const at::Tensor left = values.view({rows, rows}).to(type), right = left.t().contiguous();
  at::Tensor result = at::empty({rows, rows}, left.options());
  const double seconds = fastest(device, [&] { at::mm_out(result, left, right); });
  return 2 * std::pow(static_cast<double>(rows), 3) / seconds;
}

// Grows until a product takes long enough that its start does not count, or until memory is short; -1: it is too short
// for the smallest, or there is no kernel for the type.
double best_product_rate(c10::Device device, at::ScalarType type) {
  const double bytes = allowance(device);
  const double each = 4 + 3 * static_cast<double>(c10::elementSize(type));  // of an element, with its first values
  double best = -1;
  try {
    for (std::int64_t rows = kSmallest; rows <= kLargest; rows *= 2) {
      const double elements = std::pow(static_cast<double>(rows), 2);
      if (each * elements > bytes) {
        break;
      }
      const double rate = product_rate(device, type, rows);
      best = std::max(best, rate);
      if (2 * elements * static_cast<double>(rows) / rate > kEnough) {
        break;
      }
    }
  } catch (const std::exception&) {  // another process took the memory
  }
  return best;
}

// -1: there is no memory for a copy that is larger than caches.
double copy_rate(c10::Device device) {
  constexpr double kLeast = 16 << 20;
  const double wanted = device.is_cpu() ? 64 << 20 : 256 << 20;
  const double bytes = std::min(wanted, std::floor(allowance(device) / 2));
  if (bytes < kLeast) {
    return -1;
  }
  try {
    const auto size = static_cast<std::int64_t>(bytes);
    const at::Tensor from = at::empty({size}, at::TensorOptions(device).dtype(at::kByte)).fill_(1);
    const at::Tensor to = at::empty_like(from);
    return 2 * bytes / fastest(device, [&] { to.copy_(from); });
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
  const device::Backend& backend = device::backend_for(device);
  const std::int64_t before = backend.memory(device).reserved;
  Ceilings ceilings;
  for (const std::string& type : types) {
    if (const double rate = best_product_rate(device, scalar_type(type)); rate > 0) {
      ceilings.products.push_back({type, rate});
    }
  }
  ceilings.bytes_per_second = copy_rate(device);
  if (backend.memory(device).reserved > before) {
    backend.release_cache(device);
  }
  backend.reset_peak(device);  // the highest figure is that of steps again
  return ceilings;
}

}  // namespace stoker::observe::profile
