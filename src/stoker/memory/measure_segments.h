// SPDX-License-Identifier: Apache-2.0
// What recomputing each segment would save and cost: for a choice of the least recomputation that fits. One thread at a
// time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "stoker/core/trainable.h"

namespace stoker::memory {

struct SegmentCost {
  std::string name;  // "layer3"; of a part, "attention"
  // What autograd saves in its forward pass, and would not if it were recomputed: without parameters, its inputs and
  // outputs, and what was saved before it. Bytes of whole storages.
  std::int64_t saved_bytes = 0;
  std::int64_t output_bytes = 0;        // of its outputs: kept for the next one if that is recomputed
  double seconds = 0;                   // of its forward pass, with what the device does: at most this is done again
  std::vector<SegmentCost> parts = {};  // of a segment with parts; their bytes are as if only this part were recomputed
};

// A forward pass in the model's mode, and one of the parts of segments, without backward: a cost for each segment, in
// order. Discard a first measurement, as first passes are slow. Leaves gradients and statistics as they were;
// generators move on. values: what enters segment 0. ConfigError if this process runs Python.
[[nodiscard]] std::vector<SegmentCost> measure_segments(core::Trainable& model, core::TensorList values);

}  // namespace stoker::memory
