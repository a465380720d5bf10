// SPDX-License-Identifier: Apache-2.0
// Highway compiles this file once for each family of processors; docs/decisions/highway.md.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "data/kernel_target.cpp"
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
// clang-format off: must come before highway.h
#include <hwy/foreach_target.h>
// clang-format on
#include <hwy/highway.h>

#include "data/kernel_target.h"

HWY_BEFORE_NAMESPACE();
namespace stoker::bench::HWY_NAMESPACE {
const char* target_name() { return hwy::TargetName(HWY_TARGET); }
}  // namespace stoker::bench::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stoker::bench {

HWY_EXPORT(target_name);

void use_avx2_only() {
  hwy::DisableTargets(HWY_AVX2 - 1);  // a better version has a lower bit
}

std::string kernel_target() { return HWY_DYNAMIC_DISPATCH(target_name)(); }

}  // namespace stoker::bench
#endif
