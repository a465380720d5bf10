// SPDX-License-Identifier: Apache-2.0
#include "stoker/precision/autocast.h"

#include <ATen/autocast_mode.h>

#include "stoker/base/error.h"
#include "stoker/core/text.h"

namespace stoker::precision {

c10::ScalarType autocast_dtype(const std::string& precision) {
  return precision == "bf16" ? at::kBFloat16 : precision == "fp16" ? at::kHalf : at::kFloat;
}

AutocastGuard::AutocastGuard(c10::DeviceType device, c10::ScalarType dtype, bool enabled) : device_(device) {
  if (dtype != at::kHalf && dtype != at::kBFloat16) {
    fail<ConfigError>("precision.autocast", "autocast needs float16 or bfloat16, got {}", core::dtype_name(dtype));
  }
  was_enabled_ = at::autocast::is_autocast_enabled(device);
  old_dtype_ = at::autocast::get_autocast_dtype(device);
  at::autocast::set_autocast_dtype(device, dtype);
  at::autocast::set_autocast_enabled(device, enabled);
  at::autocast::increment_nesting();
}

AutocastGuard::~AutocastGuard() {
  if (at::autocast::decrement_nesting() == 0) {
    at::autocast::clear_cache();
  }
  at::autocast::set_autocast_enabled(device_, was_enabled_);
  at::autocast::set_autocast_dtype(device_, old_dtype_);
}

}  // namespace stoker::precision
