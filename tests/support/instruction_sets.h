// SPDX-License-Identifier: Apache-2.0
// Sets of vector instructions that kernels compiled by Highway may be limited to. What a process chose earlier and kept
// stays as it is. For one thread.
#pragma once

#include <hwy/targets.h>

#include <cstdint>
#include <vector>

namespace stoker::testing {

constexpr std::int64_t kNoInstructions = HWY_EMU128 | HWY_SCALAR;  // the plain twins

// All sets of this processor, the largest first, kNoInstructions last.
inline std::vector<std::int64_t> instruction_sets() {
  std::vector<std::int64_t> sets;
  std::int64_t set = HWY_SSSE3;
  const std::int64_t here = hwy::SupportedTargets();
  for (const std::int64_t more : {0LL, 0LL + HWY_SSE4, 0LL + HWY_AVX2, 0LL + HWY_AVX3, 0LL + HWY_AVX3_DL}) {
    set |= more;
    if ((set & ~here) == 0) {
      sets.insert(sets.begin(), set);
    }
  }
  sets.push_back(kNoInstructions);
  return sets;
}

// From now on kernels are chosen as on a processor with this set.
inline void use_instructions(std::int64_t set) {
  hwy::SetSupportedTargetsForTest(set);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

}  // namespace stoker::testing
