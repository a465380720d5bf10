// SPDX-License-Identifier: Apache-2.0
// The generator of the model as a function of the position: there is no state to save or restore. Used by train::Step.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>

namespace stoker::train {

inline constexpr std::uint32_t kNoSegment = 0xFFFFFFFF;  // random numbers drawn outside of segments

// Seeds the device's default generator. row: first row of the pass in the global batch.
void seed_pass(c10::Device device, std::uint64_t seed, std::int64_t step, std::int64_t row, std::uint32_t segment);

}  // namespace stoker::train
