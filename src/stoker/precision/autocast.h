// SPDX-License-Identifier: Apache-2.0
// Mixed precision for a scope: operators that benefit run in a half type, operators that need float32 do not, as in
// PyTorch's lists. Used by train::Step around forward, not around backward.
#pragma once

#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>

#include <string>

namespace stoker::precision {

// kFloat, kBFloat16 or kHalf for a plan's "fp32", "bf16", "fp16".
[[nodiscard]] c10::ScalarType autocast_dtype(const std::string& precision);

// Autocast is a property of the thread: a guard does not affect other threads. Autograd's threads run backward with the
// setting of the calling thread: off, since there is no guard around it. Guards nest; half copies of weights are kept
// until the outermost guard ends, also by an exception. A guard with enabled = false inside an enabled one turns
// autocast off for its scope.
class AutocastGuard {
 public:
  // dtype: kBFloat16 or kHalf, else ConfigError (also for enabled = false, so that a plan is checked once).
  AutocastGuard(c10::DeviceType device, c10::ScalarType dtype, bool enabled = true);
  ~AutocastGuard();
  AutocastGuard(const AutocastGuard&) = delete;
  AutocastGuard& operator=(const AutocastGuard&) = delete;

 private:
  c10::DeviceType device_;
  bool was_enabled_;
  c10::ScalarType old_dtype_;
};

}  // namespace stoker::precision
