// SPDX-License-Identifier: Apache-2.0
#include "stoker/memory/surroundings.h"

#include <ATen/Context.h>
#include <ATen/autocast_mode.h>
#include <ATen/core/grad_mode.h>

#include <mutex>
#include <utility>

namespace stoker::memory {
namespace {

// The CPU, and the device of the model if it is another one.
std::vector<c10::Device> devices(c10::Device device) {
  return device.is_cpu() ? std::vector{device} : std::vector{c10::Device(c10::kCPU), device};
}

}  // namespace

Surroundings::Surroundings(c10::Device device, bool draws, core::TensorList statistics)
    : device_(device), caches_casts_(at::autocast::is_autocast_cache_enabled()), statistics_(std::move(statistics)) {
  for (const c10::Device each : devices(device)) {
    autocast_.push_back(
        {each.type(), at::autocast::is_autocast_enabled(each.type()), at::autocast::get_autocast_dtype(each.type())});
    if (draws) {
      at::Generator generator = at::globalContext().defaultGenerator(each);
      const std::lock_guard lock(generator.mutex());
      generators_.push_back({generator, generator.get_state()});
    }
  }
}

void Surroundings::restore_autocast() const {
  for (const Autocast& each : autocast_) {
    at::autocast::set_autocast_enabled(each.type, each.enabled);
    at::autocast::set_autocast_dtype(each.type, each.dtype);
  }
  at::autocast::set_autocast_cache_enabled(caches_casts_);
}

void Surroundings::restore_generators() const {
  for (const Draws& each : generators_) {
    at::Generator generator = each.generator;
    const std::lock_guard lock(generator.mutex());
    generator.set_state(each.state);
  }
}

SurroundingsScope::SurroundingsScope(const Surroundings& then)
    : then_(then), now_(then.device_, !then.generators_.empty(), {}), gradients_(c10::GradMode::is_enabled()) {
  for (const at::Tensor& each : then.statistics_) {
    statistics_.push_back(each.detach().clone());
  }
  then.restore_autocast();
  at::autocast::increment_nesting();
  then.restore_generators();
  c10::GradMode::set_enabled(true);
}

SurroundingsScope::~SurroundingsScope() {
  c10::GradMode::set_enabled(false);
  try {
    for (std::size_t i = 0; i < statistics_.size(); ++i) {
      // variable_data() shares the values, but not the version counter.
      at::Tensor(then_.statistics_[i].variable_data()).copy_(statistics_[i]);
    }
    now_.restore_generators();
  } catch (...) {  // nothing was allocated, so the device is lost; its next use reports that
  }
  if (at::autocast::decrement_nesting() == 0) {
    at::autocast::clear_cache();
  }
  now_.restore_autocast();
  c10::GradMode::set_enabled(gradients_);
}

}  // namespace stoker::memory
